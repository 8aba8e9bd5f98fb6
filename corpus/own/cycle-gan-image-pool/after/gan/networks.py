import torch.nn as nn


class Generator(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.InstanceNorm2d(width), nn.ReLU(),
                                 nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, x):
        return x + self.net(x)


class Discriminator(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, width, 3, stride=2, padding=1), nn.LeakyReLU(0.2),
                                 nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, x):
        return self.net(x)
