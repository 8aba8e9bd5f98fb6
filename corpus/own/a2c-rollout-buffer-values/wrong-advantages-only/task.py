import torch


class TiltTable:
    """Keep a ball in the middle of a tilting table; several tables at once."""

    def __init__(self, tables):
        self.tables = tables

    def reset(self):
        self.place = torch.zeros(self.tables)
        self.speed = 0.5 * torch.randn(self.tables)
        return torch.stack([self.place, self.speed], dim=1)

    def step(self, action):
        self.speed = self.speed + 0.2 * (action.float() - 1) + 0.05 * torch.randn(self.tables)
        self.place = (self.place + 0.2 * self.speed).clamp(-2, 2)
        return torch.stack([self.place, self.speed], dim=1), -self.place.abs()
