import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self, vocabulary, width, tags):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.rnn = nn.GRU(width, width)
        self.score = nn.Linear(width, tags)

    def forward(self, tokens, state=None):
        features, state = self.rnn(self.embed(tokens), state)
        return self.score(features), state
