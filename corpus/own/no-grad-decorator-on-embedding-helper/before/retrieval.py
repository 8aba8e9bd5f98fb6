import torch
import torch.nn as nn
import torch.nn.functional as F


class TwoTower(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, width))
        self.document = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, width))


@torch.no_grad()
def embed(model, batch, tower):
    """Unit vectors for a batch, by the named tower."""
    return F.normalize(getattr(model, tower)(batch), dim=1)


def pairs(count, mapping):
    queries = torch.randn(count, 12)
    return queries, queries @ mapping + 0.1 * torch.randn(count, 12)
