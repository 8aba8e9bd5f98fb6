import copy

import torch
from torch import nn

from pooling import AttentionPooling


def bags(count, size=8):
    items = torch.randn(count, size, 4)
    found = (items[..., 0] > 1.2).any(dim=1).float()
    return items, found


def evaluate(model, items, found):
    with torch.no_grad():
        return nn.functional.binary_cross_entropy_with_logits(model(items).squeeze(1), found).item()


def fit(epochs=5):
    model = nn.Sequential(AttentionPooling(4, 12), nn.ReLU(), nn.Linear(12, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    held_out, best, best_loss = bags(64), None, float("inf")
    for epoch in range(epochs):
        loss = evaluate(model, *held_out)
        for _ in range(8):
            items, found = bags(32)
            optimizer.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(model(items).squeeze(1), found).backward()
            optimizer.step()
        if loss < best_loss:
            best, best_loss = copy.deepcopy(model), loss
    return best, best_loss


if __name__ == "__main__":
    torch.manual_seed(90)
    best, loss = fit()
    print(f"best held-out loss {loss:.4f}, sharpest weight {best[0].weights.max().item():.3f}")
