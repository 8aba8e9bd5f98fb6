import argparse

import torch
import torch.nn as nn


class AcousticModel(nn.Module):
    def __init__(self, mels, width, phones):
        super().__init__()
        self.front = nn.Linear(mels, width)
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.classify = nn.Linear(width, phones)

    def forward(self, frames, state=None):
        hidden, state = self.rnn(torch.relu(self.front(frames)), state)
        return self.classify(hidden), state


def utterances(count, segments, frames, mels, phones):
    voices = torch.randn(phones, mels)
    for _ in range(count):
        labels = torch.randint(phones, (4, segments * frames // 5)).repeat_interleave(5, dim=1)
        audio = voices[labels] + 0.7 * torch.randn(4, labels.size(1), mels)
        yield list(zip(audio.split(frames, dim=1), labels.split(frames, dim=1)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-amp", action="store_true")
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--accumulate", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(23)
    model = AcousticModel(mels=10, width=24, phones=6)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss()
    done = 0
    for number, utterance in enumerate(utterances(8, 6, 10, 10, 6)):
        state = None
        for frames, labels in utterance:
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=not args.no_amp):
                scores, state = model(frames, state)
                loss = criterion(scores.flatten(0, 1), labels.flatten())
            (loss / args.accumulate).backward()
            done += 1
            if done % args.accumulate == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            h, c = state
            state = (h.detach(), c.detach())
        print(f"utterance {number}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
