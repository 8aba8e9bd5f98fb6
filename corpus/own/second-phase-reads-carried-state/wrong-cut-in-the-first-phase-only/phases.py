import torch
import torch.nn as nn
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 10, batch_first=True)
        self.head = nn.Linear(10, 1)

    def forward(self, x, h):
        out, h = self.rnn(x, h)
        return self.head(out), h


net = Net()
probe = nn.Linear(10, 1)
optimizer = torch.optim.Adam([*net.parameters(), *probe.parameters()], lr=1e-3)
h = torch.zeros(1, 4, 10)
for step in range(60):
    x = torch.randn(4, 5, 3)
    y = x.sum(2, keepdim=True)
    if step < 30:
        out, h = net(x, h.detach())
        loss = (out - y).pow(2).mean()
    else:
        memory = probe(h[0]).mean()
        out, h = net(x, h * 0.5)
        loss = (out - y).pow(2).mean() + 0.1 * (memory - 1).pow(2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"step {step}: {loss.item():.4f}")
