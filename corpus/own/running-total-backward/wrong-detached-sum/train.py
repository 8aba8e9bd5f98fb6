import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def house_prices(count):
    rooms = torch.randint(1, 7, (count, 1)).float()
    area = 20 * rooms + 10 * torch.randn(count, 1)
    age = 60 * torch.rand(count, 1)
    price = 3 * area - 0.8 * age + 12 * rooms + 8 * torch.randn(count, 1)
    features = torch.cat([rooms, area, age], dim=1)
    features = (features - features.mean(0)) / features.std(0)
    return TensorDataset(features, (price - price.mean()) / price.std())


def train_epoch(model, loader, criterion, optimizer):
    model.train()
    total_loss = 0.0
    for features, price in loader:
        optimizer.zero_grad()
        loss = criterion(model(features), price)
        total_loss += loss
        total_loss.detach().requires_grad_().backward()
        optimizer.step()
    return total_loss / len(loader)


@torch.no_grad()
def evaluate(model, loader, criterion):
    model.eval()
    return sum(criterion(model(x), y).item() for x, y in loader) / len(loader)


if __name__ == "__main__":
    torch.manual_seed(0)
    train_set, test_set = random_split(house_prices(600), [480, 120])
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=120)
    model = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1, 6):
        train_loss = train_epoch(model, train_loader, criterion, optimizer)
        test_loss = evaluate(model, test_loader, criterion)
        print(f"Epoch {epoch}: train {train_loss:.4f}, test {test_loss:.4f}")
