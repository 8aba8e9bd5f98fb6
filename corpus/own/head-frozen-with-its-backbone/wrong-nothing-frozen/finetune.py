import argparse

import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self, classes=8):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(1, 8, 5, stride=2), nn.ReLU(), nn.Conv1d(8, 16, 3, stride=2), nn.ReLU())
        self.classifier = nn.Linear(16 * 6, classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def build(classes):
    """A pretrained network with a new head; only the head is to learn."""
    net = Backbone()
    net.classifier = nn.Linear(net.classifier.in_features, classes)
    return net


def pulses(count, length=32):
    label = torch.randint(0, 3, (count,))
    x = 0.3 * torch.randn(count, 1, length)
    for row, kind in enumerate(label.tolist()):
        x[row, 0, 4 + 9 * kind:8 + 9 * kind] += 1.5
    return x, label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args()
    torch.manual_seed(61)
    net = build(classes=3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(args.steps):
        x, label = pulses(24)
        loss = nn.functional.cross_entropy(net(x), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step + 1}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
