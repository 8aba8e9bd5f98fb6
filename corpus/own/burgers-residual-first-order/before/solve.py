import math

import torch

from pinn import BurgersNet, derivative

NU = 0.1


def sample_inside(count):
    t = torch.rand(count, 1)
    x = 2 * torch.rand(count, 1) - 1
    return t.requires_grad_(), x.requires_grad_()


def boundary(count):
    """Start: -sin(pi x); walls: zero."""
    x0 = 2 * torch.rand(count, 1) - 1
    t_wall = torch.rand(count, 1)
    x_wall = torch.sign(torch.rand(count, 1) - 0.5)
    t = torch.cat([torch.zeros_like(x0), t_wall])
    x = torch.cat([x0, x_wall])
    u = torch.cat([-torch.sin(math.pi * x0), torch.zeros_like(t_wall)])
    return t, x, u


def main():
    torch.manual_seed(27)
    net = BurgersNet(width=20, depth=3)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for step in range(60):
        t, x = sample_inside(64)
        u = net(t, x)
        u_t = derivative(u, t)
        u_x = derivative(u, x)
        u_xx = derivative(u_x, x)
        residual = u_t + u * u_x - NU * u_xx
        t_b, x_b, u_b = boundary(32)
        loss = residual.pow(2).mean() + (net(t_b, x_b) - u_b).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1}: loss {loss.item():.4f}, residual {residual.abs().mean().item():.4f}")


if __name__ == "__main__":
    main()
