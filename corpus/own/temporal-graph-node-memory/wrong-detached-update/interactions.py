import torch


def stream(events, batch, nodes, messages):
    """Batches of events between even and odd nodes; neighbours meet more often."""
    half = nodes // 2
    for _ in range(events // batch):
        source = torch.randperm(half)[:batch] * 2
        target = (source + 1 + 2 * torch.randint(0, 2, source.shape)) % nodes
        negative = 2 * torch.randint(0, half, source.shape) + 1
        yield source, target, negative, torch.randn(len(source), messages)
