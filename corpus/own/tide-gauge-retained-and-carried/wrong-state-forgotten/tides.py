"""Water levels at a gauge, one hour after another. retain_graph=True was the first attempt."""
import torch
from torch import nn

torch.manual_seed(23)
hours = torch.arange(400) * 0.3
level = torch.sin(hours) + 0.4 * torch.sin(2.1 * hours + 1) + 0.05 * torch.randn(400)


class Gauge(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cell = nn.GRUCell(1, width)
        self.out = nn.Linear(width, 1)

    def forward(self, value, state):
        state = self.cell(value, state)
        return self.out(state), state


model = Gauge(12)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
state = torch.zeros(1, 12)
for t in range(60):
    guess, _ = model(level[t].view(1, 1), state)
    loss = (guess - level[t + 1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    if t % 20 == 19:
        print(f"hour {t + 1}: {loss.item():.4f}")
