import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, train_loader, valid_loader, lr=0.05):
        self.model = model
        self.train_loader = train_loader
        self.valid_loader = valid_loader
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, milestones=[2], gamma=0.2)
        self.best = 0.0

    def train_epoch(self):
        self.model.train()
        running = 0.0
        for signal, label in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(signal), label)
            loss.requires_grad_()
            loss.backward()
            self.optimizer.step()
            running += loss.item() * len(label)
        return running / len(self.train_loader.dataset)

    def evaluate(self):
        self.model.eval()
        torch.set_grad_enabled(False)
        right = 0
        for signal, label in self.valid_loader:
            right += (self.model(signal).argmax(dim=1) == label).sum().item()
        return right / len(self.valid_loader.dataset)

    def fit(self, epochs):
        for epoch in range(1, epochs + 1):
            loss = self.train_epoch()
            accuracy = self.evaluate()
            self.scheduler.step()
            self.best = max(self.best, accuracy)
            print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.3f}, best {self.best:.3f}")


def chirps(count, length=32):
    label = torch.randint(0, 4, (count,))
    t = torch.linspace(0, 1, length)
    phase = 6.28 * torch.rand(count, 1)
    wave = torch.sin(6.28 * (label.view(-1, 1) + 1) * t ** 1.5 * 2 + phase)
    return TensorDataset((wave + 0.3 * torch.randn(count, length)).unsqueeze(1), label)


if __name__ == "__main__":
    torch.manual_seed(7)
    net = nn.Sequential(
        nn.Conv1d(1, 8, 5, padding=2), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(8, 16, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(64, 4),
    )
    train_loader = DataLoader(chirps(320), batch_size=32, shuffle=True)
    valid_loader = DataLoader(chirps(80), batch_size=80)
    Trainer(net, train_loader, valid_loader).fit(epochs=3)
