import torch
import torch.nn as nn

torch.manual_seed(52)


class GatedBlock(nn.Module):
    def __init__(self, channels, strength=0.5):
        super().__init__()
        self.feature = nn.Conv1d(channels, channels, 3, padding=1)
        self.gate = nn.Conv1d(channels, channels, 3, padding=1)
        self.strength = strength

    def forward(self, x):
        gate = torch.sigmoid(self.gate(x))
        gate = gate.detach() * self.strength
        return x + gate * torch.tanh(self.feature(x))


model = nn.Sequential(nn.Conv1d(1, 8, 3, padding=1), GatedBlock(8), GatedBlock(8), nn.Conv1d(8, 1, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
t = torch.linspace(0, 6.28, 64)

for step in range(60):
    clean = torch.sin(t * (1 + 3 * torch.rand(16, 1, 1)) + 6 * torch.rand(16, 1, 1))
    noisy = clean + 0.3 * torch.randn_like(clean)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(noisy), clean)
    loss.backward()
    optimizer.step()
    if (step + 1) % 20 == 0:
        print(step + 1, "%.4f" % loss.item())
