import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(29)
NODES, SIZE, BATCH = 20, 8, 10


class Memory(nn.Module):
    """One row for each node; a parameter so that it is saved and moved with the model, though nobody optimises it."""

    def __init__(self, nodes, size):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(nodes, size), requires_grad=False)

    def get(self, nodes):
        return self.table[nodes]

    def set(self, nodes, rows):
        self.table[nodes] = rows


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = Memory(NODES, SIZE)
        self.update = nn.GRUCell(SIZE + 1, SIZE)
        self.score = nn.Bilinear(SIZE, SIZE, 1)

    def forward(self, source, target, other, time):
        here = self.memory.get(source)
        message = torch.cat([self.memory.get(target), time.unsqueeze(1)], dim=1)
        fresh = self.update(message, here)
        good = self.score(fresh, self.memory.get(target))
        bad = self.score(fresh, self.memory.get(other))
        self.memory.set(source, fresh)
        return good, bad


model = Network()
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
meetings = torch.stack([torch.randperm(NODES)[:2] for _ in range(160)])
times = torch.linspace(0, 1, 160)

for start in range(0, 160, BATCH):
    chosen = meetings[start : start + BATCH]
    source = torch.unique(chosen[:, 0])
    target = chosen[:, 1][: len(source)]
    other = torch.randint(0, NODES, (len(source),))
    good, bad = model(source, target, other, times[start : start + len(source)])
    loss = F.softplus(-good).mean() + F.softplus(bad).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.memory.table.detach_()
    print(f"{start:4d} {loss.item():.4f}")
