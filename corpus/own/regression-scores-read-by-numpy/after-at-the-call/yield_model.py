import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from metrics import Report


def fields(count):
    """Soil and weather of so many fields, and what they yield."""
    x = torch.rand(count, 5)
    y = 3 * x[:, 0] * x[:, 1] - x[:, 2] + 0.5 * torch.sin(4 * x[:, 3]) + 0.05 * torch.randn(count)
    return TensorDataset(x, y.unsqueeze(1))


def predict(model, x):
    return model((x - 0.5) / 0.29)


def run_epoch(model, loader, criterion, optimizer=None):
    report, total = Report(), 0.0
    for x, y in loader:
        out = predict(model, x)
        loss = criterion(out, y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item() * len(x)
        report.add(out.detach(), y)
    return total / len(loader.dataset), report.score()


if __name__ == "__main__":
    torch.manual_seed(11)
    train, valid = DataLoader(fields(256), batch_size=32, shuffle=True), DataLoader(fields(64), batch_size=64)
    model = nn.Sequential(nn.Linear(5, 24), nn.SiLU(), nn.Linear(24, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    criterion = nn.SmoothL1Loss()
    for epoch in range(6):
        loss, score = run_epoch(model, train, criterion, optimizer)
        _, held_out = run_epoch(model, valid, criterion)
        print(f"epoch {epoch}: loss {loss:.4f}, R2 {score:.3f}, held out {held_out:.3f}")
