import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Prototypes:
    """A slowly moving mean of the embeddings of each class."""

    def __init__(self, classes, width, momentum=0.9):
        self.table = F.normalize(torch.randn(classes, width), dim=1)
        self.momentum = momentum

    def update(self, embeddings, labels):
        rows = []
        for label, row in enumerate(self.table):
            mine = embeddings[labels == label]
            if len(mine):
                row = self.momentum * row + (1 - self.momentum) * mine.mean(dim=0)
            rows.append(F.normalize(row, dim=0))
        self.table = torch.stack(rows)

    def logits(self, embeddings, temperature=0.2):
        return embeddings @ self.table.t() / temperature


class Learner:
    def __init__(self, features, classes, width=16):
        self.net = nn.Sequential(nn.Linear(features, 32), nn.GELU(), nn.Linear(32, width))
        self.prototypes = Prototypes(classes, width)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=4e-3, weight_decay=1e-2)

    def step(self, inputs, labels):
        embeddings = F.normalize(self.net(inputs), dim=1).detach().requires_grad_()
        loss = F.cross_entropy(self.prototypes.logits(embeddings), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.prototypes.update(embeddings.detach(), labels)
        return loss.item()


def blobs(count, classes, features):
    labels = torch.randint(classes, (count,))
    centres = 2 * torch.randn(classes, features)
    return TensorDataset(centres[labels] + torch.randn(count, features), labels)


if __name__ == "__main__":
    torch.manual_seed(77)
    loader = DataLoader(blobs(400, 5, 8), batch_size=40, shuffle=True)
    learner = Learner(8, 5)
    for epoch in range(4):
        losses = [learner.step(x, y) for x, y in loader]
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}")
