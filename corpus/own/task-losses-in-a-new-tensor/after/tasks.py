import torch
from torch import nn


class Shared(nn.Module):
    """One trunk and a head for each of several regression tasks."""

    def __init__(self, inputs=6, width=20, tasks=3):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(inputs, width), nn.Softplus())
        self.heads = nn.ModuleList(nn.Linear(width, 1) for _ in range(tasks))

    def forward(self, x):
        h = self.trunk(x)
        return [head(h).squeeze(1) for head in self.heads]


class Weighted(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.register_buffer("weights", torch.tensor(weights))

    def forward(self, outputs, targets):
        losses = [nn.functional.mse_loss(out, target) for out, target in zip(outputs, targets)]
        return (self.weights * torch.stack(losses)).sum()


def batch(count=48):
    x = torch.randn(count, 6)
    return x, (x[:, 0] + x[:, 1], x[:, 2] * x[:, 3], x[:, 4].abs())


if __name__ == "__main__":
    torch.manual_seed(19)
    net, criterion = Shared(), Weighted([0.5, 0.3, 0.2])
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(1, 41):
        x, targets = batch()
        loss = criterion(net(x), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"{step}: {loss.item():.4f}")
