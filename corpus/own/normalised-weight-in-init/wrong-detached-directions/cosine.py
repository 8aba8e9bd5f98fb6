import torch
import torch.nn as nn
import torch.nn.functional as F


class CosineHead(nn.Module):
    def __init__(self, width, classes, scale=10.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, width))
        self.scale = scale
        self.directions = F.normalize(self.weight, dim=1).detach()

    def forward(self, features):
        return self.scale * F.linear(F.normalize(features, dim=1), self.directions)


class FaceNet(nn.Module):
    def __init__(self, inputs, width, people):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(inputs, 32),
            nn.BatchNorm1d(32),
            nn.ReLU(),
            nn.Linear(32, width),
        )
        self.head = CosineHead(width, people)

    def forward(self, pictures):
        return self.head(self.backbone(pictures))


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=5)

    def run(self, pictures, people, epochs=5, batch_size=32):
        for epoch in range(epochs):
            right = 0
            for index in torch.randperm(len(pictures)).split(batch_size):
                logits = self.model(pictures[index])
                loss = F.cross_entropy(logits, people[index])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                right += (logits.argmax(dim=1) == people[index]).sum().item()
            self.scheduler.step()
            print(f"epoch {epoch}: accuracy {right / len(pictures):.3f}")


if __name__ == "__main__":
    torch.manual_seed(50)
    people = torch.randint(0, 6, (384,))
    pictures = torch.randn(6, 20)[people] + 0.8 * torch.randn(384, 20)
    Trainer(FaceNet(20, 12, 6), lr=0.02).run(pictures, people)
