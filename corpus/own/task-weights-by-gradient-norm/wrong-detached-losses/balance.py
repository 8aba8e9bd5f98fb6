"""Two regressions share a body; their weights follow the norms of their gradients."""
import torch
import torch.nn as nn

torch.manual_seed(19)


class Shared(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 20), nn.ReLU())
        self.last = nn.Linear(20, 10)
        self.heads = nn.ModuleList(nn.Linear(10, 1) for _ in range(tasks))

    def forward(self, x):
        features = torch.tanh(self.last(self.body(x)))
        return [head(features).squeeze(1) for head in self.heads]


x = torch.randn(256, 5)
targets = [x[:, 0] * x[:, 1], 5.0 * torch.sin(x[:, 2])]
net = Shared(len(targets))
share = nn.Parameter(torch.ones(len(targets)))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
share_optimizer = torch.optim.SGD([share], lr=2e-2)
first = None

for step in range(30):
    batch = torch.randint(0, len(x), (64,))
    outputs = net(x[batch])
    losses = torch.stack([nn.functional.mse_loss(out, y[batch]) for out, y in zip(outputs, targets)])
    if first is None:
        first = losses.detach()
    optimizer.zero_grad()
    (share * losses.detach()).sum().backward()

    # the gradient's norm of each task, at the last layer that they share
    norms = torch.stack([
        share[i] * torch.autograd.grad(losses[i], net.last.weight, retain_graph=True)[0].norm()
        for i in range(len(targets))
    ])
    speed = losses.detach() / first
    wanted = norms.detach().mean() * (speed / speed.mean())
    share_optimizer.zero_grad()
    (norms - wanted).abs().sum().backward()
    share_optimizer.step()
    optimizer.step()
    with torch.no_grad():
        share *= len(targets) / share.sum()
    if step % 10 == 9:
        print(step + 1, [round(value, 4) for value in losses.tolist()], [round(value, 3) for value in share.tolist()])
