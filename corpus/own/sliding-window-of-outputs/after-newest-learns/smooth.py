from collections import deque

import torch
import torch.nn as nn

torch.manual_seed(47)


class Smoother:
    """The mean of the last few outputs, the newest included."""

    def __init__(self, length):
        self.outputs = deque(maxlen=length)

    def mean(self, output):
        self.outputs.append(output)
        mean = torch.stack(list(self.outputs)).mean(0)
        self.outputs[-1] = output.detach()
        return mean


net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
smoother = Smoother(4)

phase = torch.rand(8, 1) * 6.28
for step in range(30):
    signal = torch.sin(phase + 0.3 * step + torch.arange(4))
    output = net(signal)
    smooth = smoother.mean(output)
    now = (output - signal[:, :3]).pow(2).mean()
    steady = (smooth - signal[:, 1:].mean(1, keepdim=True)).pow(2).mean()
    loss = now + 0.5 * steady
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 4:
        print(f"step {step}: now {now.item():.4f}, steady {steady.item():.4f}")
