import torch
import torch.nn as nn


class MaskedAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x, padding):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / x.size(-1) ** 0.5
        scores = scores.masked_fill(padding.unsqueeze(1), float('-inf'))
        weights = scores.softmax(dim=-1)
        return weights @ self.value(x)


class SetClassifier(nn.Module):
    def __init__(self, features, width, classes):
        super().__init__()
        self.embed = nn.Linear(features, width)
        self.attention = MaskedAttention(width)
        self.out = nn.Linear(width, classes)

    def forward(self, items, padding):
        x = torch.relu(self.embed(items))
        x = x + self.attention(x, padding)
        keep = (~padding).unsqueeze(-1).float()
        return self.out((x * keep).sum(dim=1) / keep.sum(dim=1))
