import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class IFNode(nn.Module):
    def __init__(self, tau=0.8):
        super().__init__()
        self.tau = tau
        self.v = 0.0

    def reset(self):
        self.v = 0.0

    def detach(self):
        if torch.is_tensor(self.v):
            self.v = self.v.detach()

    def forward(self, current):
        self.v = self.tau * self.v + current
        spike = torch.sigmoid(5 * (self.v - 1.0))
        self.v = self.v * (1 - spike)
        return spike


class SpikingNet(nn.Module):
    def __init__(self, inputs, width, classes, ticks=6):
        super().__init__()
        self.ticks = ticks
        self.layers = nn.Sequential(nn.Linear(inputs, width), IFNode(), nn.Linear(width, classes), IFNode())

    def reset(self):
        for layer in self.layers:
            if isinstance(layer, IFNode):
                layer.reset()

    def detach(self):
        for layer in self.layers:
            if isinstance(layer, IFNode):
                layer.detach()

    def forward(self, x):
        return sum(self.layers(x) for _ in range(self.ticks)) / self.ticks


def test(net, loader):
    right = 0
    with torch.no_grad():
        for x, y in loader:
            net.reset()
            right += (net(x).argmax(1) == y).sum().item()
    net.reset()
    return right / len(loader.dataset)


def main():
    torch.manual_seed(58)
    y = torch.randint(4, (320,))
    x = (torch.rand(4, 12)[y] + 0.3 * torch.rand(320, 12)).clamp(0, 1)
    train_loader = DataLoader(TensorDataset(x[:256], y[:256]), batch_size=32, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[256:], y[256:]), batch_size=64)
    net = SpikingNet(12, 32, 4)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(4):
        for x_batch, y_batch in train_loader:
            optimizer.zero_grad()
            rate = net(x_batch)
            loss = F.mse_loss(rate, F.one_hot(y_batch, 4).float())
            loss.backward()
            optimizer.step()
            net.detach()
        print(f"epoch {epoch}: loss {loss.item():.4f} accuracy {test(net, test_loader):.3f}")


if __name__ == "__main__":
    main()
