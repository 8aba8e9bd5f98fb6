import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(3)

WINDOW = 12
t = torch.arange(0, 400).float()
signal = torch.sin(t / 7) * torch.cos(t / 31) + 0.05 * torch.randn(400)


class CellStack(nn.Module):
    def __init__(self, inputs, hidden, depth):
        super().__init__()
        sizes = [inputs] + [hidden] * (depth - 1)
        self.cells = nn.ModuleList(nn.LSTMCell(n, hidden) for n in sizes)
        self.out = nn.Linear(hidden, 1)
        self.hidden = hidden

    def blank(self, batch):
        return [(torch.zeros(batch, self.hidden), torch.zeros(batch, self.hidden)) for _ in self.cells]

    def forward(self, x, states):
        new_states = []
        for cell, state in zip(self.cells, states):
            x, c = cell(x, state)
            new_states.append((x, c))
        return self.out(x), new_states


net = CellStack(1, 24, depth=2)
optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)

for epoch in range(3):
    states = net.blank(1)
    epoch_loss, windows = 0.0, 0
    for start in range(0, len(signal) - WINDOW - 1, WINDOW):
        optimizer.zero_grad()
        loss = 0
        for k in range(start, start + WINDOW):
            prediction, states = net(signal[k].view(1, 1), states)
            loss = loss + F.smooth_l1_loss(prediction.view(()), signal[k + 1])
        loss = loss / WINDOW
        loss.backward()
        optimizer.step()
        states = net.blank(1)
        epoch_loss += loss.item()
        windows += 1
    scheduler.step()
    print("epoch", epoch, "loss", round(epoch_loss / windows, 4), "lr", scheduler.get_last_lr()[0])
