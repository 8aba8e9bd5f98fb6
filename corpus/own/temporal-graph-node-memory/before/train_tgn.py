import torch
import torch.nn as nn

from interactions import stream
from node_memory import NodeMemory


class LinkModel(nn.Module):
    def __init__(self, nodes, width, messages):
        super().__init__()
        self.memory = NodeMemory(nodes, width, messages)
        self.link = nn.Bilinear(width, width, 1)

    def forward(self, source, target, negative, features):
        self.memory.update(source, target, features)
        rows = self.memory.rows
        positive = self.link(rows[source], rows[target])
        other = self.link(rows[source], rows[negative])
        return positive.squeeze(-1), other.squeeze(-1)


def main():
    torch.manual_seed(12)
    model = LinkModel(nodes=30, width=16, messages=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(2):
        model.memory.reset_memory()
        losses = []
        for source, target, negative, features in stream(events=320, batch=16, nodes=30, messages=4):
            optimizer.zero_grad()
            positive, other = model(source, target, negative, features)
            loss = criterion(positive, torch.ones_like(positive)) + criterion(other, torch.zeros_like(other))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main()
