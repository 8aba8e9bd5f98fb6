import torch.nn as nn


class Encoder(nn.Module):
    def __init__(self, inputs, width=6):
        super().__init__()
        self.width = width
        self.net = nn.Sequential(nn.Linear(inputs, 16), nn.SiLU(), nn.Linear(16, width))

    def forward(self, x):
        return self.net(x)


class Regressor(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, codes):
        return self.net(codes)
