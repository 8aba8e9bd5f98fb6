import torch
from torch import nn

from codec import Codec


def bumps(count, size=12):
    place = torch.rand(count, 1) * size
    width = 1 + torch.rand(count, 1)
    return torch.exp(-((torch.arange(size) - place) / width) ** 2)


class Fit:
    def __init__(self, codec, lr=1e-2):
        self.codec = codec
        self.criterion = nn.MSELoss()
        self.optimizer = torch.optim.RMSprop(codec.parameters(), lr=lr)

    def step(self, x):
        result = self.codec(x)
        loss = self.criterion(result["out"], x)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item(), result["code"].std().item()


if __name__ == "__main__":
    torch.manual_seed(77)
    fit = Fit(Codec())
    for number in range(1, 46):
        loss, spread = fit.step(bumps(32))
        if number % 15 == 0:
            print(f"{number}: loss {loss:.4f}, spread of codes {spread:.3f}")
