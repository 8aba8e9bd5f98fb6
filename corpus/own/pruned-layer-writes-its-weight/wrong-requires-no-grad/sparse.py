import torch
from torch import nn


class PrunedLinear(nn.Linear):
    """A linear layer of whose weights only a random part exists."""

    def __init__(self, inputs, outputs, density=0.4):
        super().__init__(inputs, outputs)
        self.weight.requires_grad_(False)
        self.register_buffer("mask", (torch.rand(outputs, inputs) < density).float())

    def forward(self, x):
        self.weight.mul_(self.mask)
        return nn.functional.linear(x, self.weight, self.bias)


class SparseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = PrunedLinear(8, 32), PrunedLinear(32, 1)

    def forward(self, x):
        return self.two(torch.relu(self.one(x))).squeeze(1)


if __name__ == "__main__":
    torch.manual_seed(23)
    net = SparseNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, weight_decay=1e-3)
    for step in range(1, 51):
        x = torch.randn(64, 8)
        loss = (net(x) - (x[:, 0] * x[:, 1]).tanh()).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(step, round(loss.item(), 4))
