import numpy as np
import torch
import torch.nn as nn


class CachedEncoder(nn.Module):
    """Encoding a molecule is slow, so each one is encoded only once."""

    def __init__(self, atoms, width):
        super().__init__()
        self.embed = nn.Embedding(atoms, width)
        self.refine = nn.Linear(width, width)
        self._memo = {}

    def forward(self, key, atoms):
        if key not in self._memo:
            self._memo[key] = torch.tanh(self.refine(self.embed(atoms).mean(dim=0)))
        return self._memo[key]


class Learner:
    def __init__(self, atoms=9, width=12):
        self.encoder = CachedEncoder(atoms, width)
        self.head = nn.Linear(width, 1)
        parameters = list(self.encoder.parameters()) + list(self.head.parameters())
        self.optimizer = torch.optim.SGD(parameters, lr=0.05)
        self.criterion = nn.BCEWithLogitsLoss()

    def step(self, key, atoms, toxic):
        self.optimizer.zero_grad()
        logit = self.head(self.encoder(key, atoms)).squeeze()
        loss = self.criterion(logit, toxic)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def molecules(count, seed):
    rng = np.random.default_rng(seed)
    for key in range(count):
        atoms = rng.integers(0, 9, size=rng.integers(4, 10))
        yield key, torch.from_numpy(atoms), torch.tensor(float((atoms >= 6).sum() >= 2))


def main():
    torch.manual_seed(1)
    learner = Learner()
    table = list(molecules(300, seed=1))
    for epoch in range(3):
        losses = [learner.step(*row) for row in table]
        print("epoch", epoch, "mean loss", round(float(np.mean(losses)), 4))


if __name__ == "__main__":
    main()
