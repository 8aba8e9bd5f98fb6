import math

import torch
from torch import nn


class Field(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x, t):
        return self.layers(torch.cat([x, t], dim=1))


def derivative(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


class HeatEquation:
    """u_t = k u_xx on a rod, ends at zero, a sine at the start."""

    def __init__(self, field, conductivity=0.1):
        self.field, self.k = field, conductivity

    def equation(self, count):
        x, t = torch.rand(count, 1), torch.rand(count, 1)
        u = self.field(x, t)
        for points in (x, t):
            points.requires_grad_(True)
        return derivative(u, t) - self.k * derivative(derivative(u, x), x)

    def start(self, count):
        x = torch.rand(count, 1)
        return self.field(x, torch.zeros_like(x)) - torch.sin(math.pi * x)

    def loss(self, count=64):
        return self.start(count).square().mean()


if __name__ == "__main__":
    torch.manual_seed(13)
    problem = HeatEquation(Field())
    optimizer = torch.optim.Adam(problem.field.parameters(), lr=3e-3)
    for step in range(1, 41):
        optimizer.zero_grad()
        loss = problem.loss()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"{step}: {loss.item():.5f}")
