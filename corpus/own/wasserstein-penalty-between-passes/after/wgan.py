import argparse

import torch
import torch.nn as nn
from torch import autograd

parser = argparse.ArgumentParser()
parser.add_argument("--batches", type=int, default=24)
parser.add_argument("--n_critic", type=int, default=3, help="critic steps for each generator step")
parser.add_argument("--penalty", type=float, default=10.0)
opt = parser.parse_args()

torch.manual_seed(21)
generator = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.9))
optimizer_D = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.9))


def ring(count):
    angle = 2 * torch.pi * torch.rand(count)
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(count, 2)


def gradient_penalty(real, fake):
    share = torch.rand(len(real), 1)
    between = (share * real + (1 - share) * fake).requires_grad_(True)
    verdict = critic(between)
    slope = autograd.grad(
        outputs=verdict, inputs=between, grad_outputs=torch.ones_like(verdict), create_graph=True, retain_graph=True
    )[0]
    return ((slope.norm(2, dim=1) - 1) ** 2).mean()


for i in range(opt.batches):
    real = ring(32)
    z = torch.randn(32, 4)

    optimizer_D.zero_grad()
    fake = generator(z)
    loss_D = critic(fake.detach()).mean() - critic(real).mean() + opt.penalty * gradient_penalty(real.data, fake.data)
    loss_D.backward()
    optimizer_D.step()

    optimizer_G.zero_grad()
    if i % opt.n_critic == 0:
        loss_G = -critic(fake).mean()
        loss_G.backward()
        optimizer_G.step()
        print(f"batch {i}: critic {loss_D.item():.4f}, generator {loss_G.item():.4f}")
