import torch
import torch.nn as nn


class RoutedLayer(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))
        self.balance_losses = []

    def forward(self, x):
        weights = self.router(x).softmax(dim=-1)
        share = weights.mean(dim=0)
        balance = len(self.experts) * (share * share).sum()
        self.balance_losses = [balance]
        outputs = torch.stack([torch.relu(expert(x)) for expert in self.experts], dim=1)
        return x + (weights.unsqueeze(-1) * outputs).sum(dim=1)


class MoEClassifier(nn.Module):
    def __init__(self, inputs, width, experts, depth, classes):
        super().__init__()
        self.embed = nn.Linear(inputs, width)
        self.layers = nn.ModuleList(RoutedLayer(width, experts) for _ in range(depth))
        self.head = nn.Linear(width, classes)

    def balance_loss(self):
        return sum(sum(layer.balance_losses) for layer in self.layers)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)
