import torch
import torch.nn.functional as F

from labels import LABELS, sample
from matcher import Matcher


def main():
    torch.manual_seed(61)
    model = Matcher(features=10, labels=LABELS)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(60):
        inputs, targets = sample(48)
        loss = F.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1}: loss {loss.item():.3f}")
    model.eval()


if __name__ == "__main__":
    main()
