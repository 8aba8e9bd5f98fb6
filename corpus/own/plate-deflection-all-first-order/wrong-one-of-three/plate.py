import torch
import torch.nn as nn

torch.manual_seed(11)
CONDUCTIVITY = 0.3


class Temperature(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, place, time):
        return self.body(torch.cat([place, time], dim=1))


def residual(model, place, time):
    u = model(place, time)
    ones = torch.ones_like(u)
    u_t = torch.autograd.grad(u, time, grad_outputs=ones, retain_graph=True)[0]
    u_x = torch.autograd.grad(u, place, grad_outputs=ones, create_graph=True)[0]
    u_xx = torch.autograd.grad(u_x, place, grad_outputs=ones, retain_graph=True)[0]
    return u_t + u * u_x - CONDUCTIVITY * u_xx


place = (2 * torch.rand(64, 1) - 1).requires_grad_()
time = torch.rand(64, 1).requires_grad_()
start_place = 2 * torch.rand(32, 1) - 1
start_value = torch.sin(torch.pi * start_place)

model = Temperature()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(1, 41):
    optimizer.zero_grad()
    start_loss = ((model(start_place, torch.zeros_like(start_place)) - start_value) ** 2).mean()
    inner_loss = (residual(model, place, time) ** 2).mean()
    loss = start_loss + inner_loss
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step}: start {start_loss.item():.4f}, residual {inner_loss.item():.4f}")
