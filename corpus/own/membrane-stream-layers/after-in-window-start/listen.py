import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(42)
TICKS = 10


class LeakyLayer(nn.Module):
    def __init__(self, n_in, n_out, leak=0.85):
        super().__init__()
        self.weights = nn.Linear(n_in, n_out)
        self.leak = leak
        self.membrane = torch.zeros(n_out)

    def forward(self, x):
        membrane = self.leak * self.membrane + self.weights(x)
        fired = torch.sigmoid(8 * (membrane - 1))
        self.membrane = membrane - fired.detach()
        return fired


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = LeakyLayer(6, 24)
        self.second = LeakyLayer(24, 12)
        self.readout = nn.Linear(12, 1)

    def forward(self, x):
        return self.readout(self.second(self.first(x)))


def microphone():
    offsets = torch.linspace(0, 2, 6)
    for tick in itertools.count():
        tone = torch.sin(tick / 9 + offsets) + 0.1 * torch.randn(6)
        yield tone, torch.tensor([math.cos(tick / 9)])


net = Listener()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
source = microphone()
updates = 0
while True:
    loss = 0.0
    net.first.membrane = net.first.membrane.detach()
    net.second.membrane = net.second.membrane.detach()
    for _ in range(TICKS):
        sound, wanted = next(source)
        loss = loss + F.mse_loss(net(sound), wanted) / TICKS
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    updates += 1
    if updates % 25 == 0:
        print(f"update {updates}: loss {loss.item():.4f}", flush=True)
