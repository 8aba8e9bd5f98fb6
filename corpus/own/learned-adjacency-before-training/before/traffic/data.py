import torch


def synthetic_traffic(sensors, length):
    """Speeds on a ring road: each sensor follows its neighbour with a delay."""
    base = torch.sin(torch.arange(length + sensors).float() / 6)
    rows = [base[sensors - k:sensors - k + length] for k in range(sensors)]
    return torch.stack(rows) + 0.1 * torch.randn(sensors, length)


def windows(speeds, history, batch):
    starts = torch.randperm(speeds.size(1) - history)
    for chunk in starts.split(batch):
        past = torch.stack([speeds[:, s:s + history] for s in chunk.tolist()])
        future = torch.stack([speeds[:, s + history] for s in chunk.tolist()])
        yield past, future
