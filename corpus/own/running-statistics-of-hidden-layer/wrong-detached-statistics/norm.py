import torch
import torch.nn as nn


class RunningNorm(nn.Module):
    """Normalises with a moving mean and variance, the present batch included."""

    def __init__(self, width, keep=0.8, eps=1e-5):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.keep, self.eps = keep, eps
        self.mean = torch.zeros(width)
        self.var = torch.ones(width)

    def forward(self, x):
        if self.training:
            mean = self.keep * self.mean + (1 - self.keep) * x.mean(dim=0).detach()
            var = self.keep * self.var + (1 - self.keep) * x.var(dim=0, unbiased=False).detach()
            self.mean = mean
            self.var = var
        else:
            mean, var = self.mean, self.var
        return self.scale * (x - mean) / torch.sqrt(var + self.eps) + self.shift


class Trainer:
    def __init__(self, features, classes):
        self.net = nn.Sequential(nn.Linear(features, 24), RunningNorm(24), nn.ReLU(), nn.Linear(24, classes))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()

    def epoch(self, inputs, labels, size=50):
        self.net.train()
        for rows in torch.randperm(len(inputs)).split(size):
            self.optimizer.zero_grad()
            loss = self.loss(self.net(inputs[rows]), labels[rows])
            loss.backward()
            self.optimizer.step()
        self.net.eval()
        with torch.no_grad():
            return (self.net(inputs).argmax(dim=1) == labels).float().mean().item()


def main():
    torch.manual_seed(99)
    labels = torch.randint(3, (600,))
    inputs = 5 + torch.randn(3, 9)[labels] + torch.randn(600, 9)
    trainer = Trainer(9, 3)
    for number in range(4):
        print(f"epoch {number}: accuracy {trainer.epoch(inputs, labels):.3f}")


if __name__ == "__main__":
    main()
