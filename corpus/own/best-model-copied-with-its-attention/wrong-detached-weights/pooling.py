import torch
from torch import nn


class AttentionPooling(nn.Module):
    """Weighs the items of a set; the weights of the last batch are kept for a look at them."""

    def __init__(self, features, width):
        super().__init__()
        self.score = nn.Linear(features, 1)
        self.value = nn.Linear(features, width)
        self.weights = None

    def forward(self, items):
        weights = torch.softmax(self.score(items), dim=1).detach()
        self.weights = weights
        return (weights * self.value(items)).sum(dim=1)
