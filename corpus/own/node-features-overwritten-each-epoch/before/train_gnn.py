from types import SimpleNamespace

import torch
import torch.nn as nn
import torch.nn.functional as F


def two_communities(nodes, features):
    label = torch.arange(nodes) % 2
    same = label[:, None] == label[None, :]
    edges = (torch.rand(nodes, nodes) < torch.where(same, 0.25, 0.05)).float()
    edges = ((edges + edges.t() + torch.eye(nodes)) > 0).float()
    degree = edges.sum(1).rsqrt()
    x = torch.randn(nodes, features) + 0.3 * (2 * label[:, None] - 1)
    return SimpleNamespace(x=x, adjacency=degree[:, None] * edges * degree[None, :], label=label)


class GraphLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, graph):
        return torch.tanh(self.linear(graph.adjacency @ graph.x))


class CommunityNet(nn.Module):
    def __init__(self, width, depth=2):
        super().__init__()
        self.layers = nn.ModuleList(GraphLayer(width) for _ in range(depth))
        self.read = nn.Linear(width, 2)

    def forward(self, graph):
        for layer in self.layers:
            graph.x = layer(graph)
        return self.read(graph.x)


def main():
    torch.manual_seed(55)
    graph = two_communities(60, 8)
    known = torch.randperm(60)[:20]
    net = CommunityNet(8)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(1, 31):
        logits = net(graph)
        loss = F.cross_entropy(logits[known], graph.label[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 10 == 0:
            accuracy = (logits.argmax(1) == graph.label).float().mean().item()
            print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
