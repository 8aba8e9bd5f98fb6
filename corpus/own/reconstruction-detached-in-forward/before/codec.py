import torch
from torch import nn


class Codec(nn.Module):
    def __init__(self, size=12, code=3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size, 16), nn.ELU(), nn.Linear(16, code))
        self.decoder = nn.Sequential(nn.Linear(code, 16), nn.ELU(), nn.Linear(16, size))
        self.last = None

    def forward(self, x):
        code = self.encoder(x)
        self.last = out = self.decoder(code).detach()
        return {"code": code.detach(), "out": out}
