from functools import cached_property

import torch
from torch import nn
from torch.nn import functional as F


class Matcher(nn.Module):
    """Scores an input against the embedded text of every label."""

    def __init__(self, features, labels, width=16):
        super().__init__()
        words = sorted({word for label in labels for word in label.split()})
        self.index = {word: number for number, word in enumerate(words)}
        self.labels = labels
        self.words = nn.EmbeddingBag(len(words), width, mode="sum")
        self.label_head = nn.Linear(width, width)
        self.input_head = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, width))

    @cached_property
    def label_vectors(self):
        tokens = torch.tensor([[self.index[word] for word in label.split()] for label in self.labels])
        return F.normalize(self.label_head(self.words(tokens)), dim=-1)

    def forward(self, inputs):
        return 8 * F.normalize(self.input_head(inputs), dim=-1) @ self.label_vectors.t()
