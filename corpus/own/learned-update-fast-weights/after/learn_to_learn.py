import torch
import torch.nn as nn

torch.manual_seed(53)


class FastNet(nn.Module):
    """Its weights are plain tensors, replaced by the learned update."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def flat(self):
        return torch.cat([self.layer._parameters["weight"].view(-1), self.layer._parameters["bias"].view(-1)])

    def assign(self, flat):
        self.layer._parameters["weight"] = flat[:15].view(3, 5)
        self.layer._parameters["bias"] = flat[15:].view(3)

    def load(self, other):
        for mine, theirs in zip(self.layer._parameters.values(), other.parameters()):
            mine.data.copy_(theirs.data)


rule = nn.Linear(2, 2)
optimizer = torch.optim.Adam(rule.parameters(), lr=1e-2)
fast = FastNet()
learner = nn.Linear(5, 3)
for window in range(16):
    fast.assign(fast.flat().detach())
    fast.load(learner)
    total = 0
    for inner in range(2):
        x = torch.randn(8, 5)
        y = x[:, :3].argmax(1)
        learner.zero_grad()
        nn.functional.cross_entropy(learner(x), y).backward()
        grads = torch.cat([p.grad.view(-1) for p in learner.parameters()])
        flat = fast.flat()
        gates = torch.sigmoid(rule(torch.stack([grads, flat.data], 1)))
        flat = gates[:, 0] * flat - gates[:, 1] * grads
        fast.assign(flat)
        with torch.no_grad():
            for p, new in zip(learner.parameters(), fast.layer._parameters.values()):
                p.copy_(new)
        total = total + nn.functional.cross_entropy(fast.layer(x), y)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    print(window, total.item())
