import torch
import torch.nn as nn
import torch.nn.functional as F

from moe.block import MoEClassifier


def spirals(count):
    label = torch.randint(0, 3, (count,))
    radius = torch.rand(count)
    angle = 4 * radius + label * 2.1 + 0.1 * torch.randn(count)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), label


def main():
    torch.manual_seed(16)
    points, labels = spirals(512)
    model = MoEClassifier(inputs=2, width=24, experts=4, depth=2, classes=3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for epoch in range(4):
        order = torch.randperm(len(points))
        for index in order.split(64):
            logits = model(points[index])
            loss = F.cross_entropy(logits, labels[index]) + 0.05 * model.balance_loss()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        with torch.no_grad():
            accuracy = (model(points).argmax(1) == labels).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
