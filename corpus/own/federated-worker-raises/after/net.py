import torch.nn as nn


class Pulse(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.rnn = nn.GRU(1, width, batch_first=True)
        self.read = nn.Linear(width, 1)

    def forward(self, x, hidden=None):
        features, hidden = self.rnn(x, hidden)
        return self.read(features), hidden
