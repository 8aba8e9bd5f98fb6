import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(37)
MICRO, STRENGTH = 4, 2e-2


def ridge(net):
    return STRENGTH * sum(p.pow(2).sum() for p in net.parameters())


def make_data(count=320):
    x = torch.randn(count, 6)
    return TensorDataset(x, x[:, :2].prod(dim=1, keepdim=True) + 0.1 * torch.randn(count, 1))


net = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
loader = DataLoader(make_data(), batch_size=32, shuffle=True)

for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        penalty = ridge(net).detach()
        total = 0.0
        for xs, ys in zip(x.chunk(MICRO), y.chunk(MICRO)):
            loss = (nn.functional.mse_loss(net(xs), ys) + penalty) / MICRO
            loss.backward()
            total += loss.item()
        optimizer.step()
    print(f"epoch {epoch}: {total:.4f}")
