import torch
import torch.nn.functional as F

from layers.attention import SetClassifier


def bags(count, size, features):
    items = torch.randn(count, size, features)
    lengths = torch.randint(2, size + 1, (count,))
    padding = torch.arange(size) >= lengths[:, None]
    items[padding] = 0.0
    labels = (items[..., 0].max(dim=1).values > 1.0).long()
    return items, padding, labels


if __name__ == "__main__":
    torch.manual_seed(38)
    model = SetClassifier(features=6, width=16, classes=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(1, 61):
        items, padding, labels = bags(48, 7, 6)
        loss = F.cross_entropy(model(items, padding), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")
