import argparse

import torch
import torch.nn as nn


class AgeAndMood(nn.Module):
    def __init__(self, features, width, moods):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Dropout(0.2),
                                   nn.Linear(width, width), nn.ReLU())
        self.age = nn.Linear(width, 1)
        self.mood = nn.Linear(width, moods)

    def forward(self, x):
        shared = self.trunk(x)
        return self.age(shared).squeeze(-1), self.mood(shared)


def people(count, features, moods):
    x = torch.randn(count, features)
    age = x[:, 0] + 0.5 * x[:, 1] ** 2
    mood = (x[:, 2:2 + moods] + 0.2 * x[:, :1]).argmax(dim=1)
    return x, age, mood


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--mood-weight", type=float, default=0.5)
    args = parser.parse_args()

    torch.manual_seed(88)
    model = AgeAndMood(features=8, width=32, moods=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    age_criterion, mood_criterion = nn.SmoothL1Loss(), nn.CrossEntropyLoss()
    for step in range(1, args.steps + 1):
        x, age, mood = people(64, 8, 4)
        predicted_age, predicted_mood = model(x)
        age_loss = age_criterion(predicted_age, age)
        mood_loss = args.mood_weight * mood_criterion(predicted_mood, mood)

        optimizer.zero_grad()
        age_loss.backward()
        mood_loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: age {age_loss.item():.4f} mood {mood_loss.item():.4f}")


if __name__ == "__main__":
    main()
