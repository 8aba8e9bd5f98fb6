import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

K = 5


class DelayedCopy(Dataset):
    """A random bit stream; the target is the bit seen three ticks earlier."""

    def __init__(self, count, length):
        generator = torch.Generator().manual_seed(1)
        self.bits = torch.randint(0, 2, (count, length), generator=generator).float()

    def __len__(self):
        return len(self.bits)

    def __getitem__(self, index):
        bits = self.bits[index]
        return bits, torch.roll(bits, 3)


class TinyRNN(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.cell = nn.RNNCell(1, width)
        self.read = nn.Linear(width, 1)
        self.width = width

    def step(self, bit, hidden):
        hidden = self.cell(bit.unsqueeze(1), hidden)
        return self.read(hidden).squeeze(1), hidden


def train_sequence(model, optimizer, criterion, bits, wanted):
    hidden = torch.zeros(bits.size(0), model.width)
    losses, total = [], 0.0
    for tick in range(bits.size(1)):
        logit, hidden = model.step(bits[:, tick], hidden)
        losses.append(criterion(logit, wanted[:, tick]))
        if (tick + 1) % K == 0:
            optimizer.zero_grad()
            loss = torch.stack(losses).mean()
            loss.backward()
            optimizer.step()
            total += loss.item()
            losses = []
    return total / (bits.size(1) // K)


def main():
    torch.manual_seed(19)
    loader = DataLoader(DelayedCopy(128, 30), batch_size=32, num_workers=2)
    model = TinyRNN()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(3):
        losses = [train_sequence(model, optimizer, nn.BCEWithLogitsLoss(), *batch) for batch in loader]
        print(f"epoch {epoch + 1}: {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main()
