import torch
import torch.nn as nn
import torch.nn.functional as F


class Backbone(nn.Module):
    """Pretend that these weights were downloaded."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )

    def forward(self, images):
        return self.net(images)


def digits(count):
    labels = torch.randint(0, 4, (count,))
    images = 0.3 * torch.randn(count, 1, 8, 8)
    for image, label in zip(images, labels.tolist()):
        row, column = divmod(label, 2)
        image[0, 4 * row:4 * row + 4, 4 * column:4 * column + 4] += 1.0
    return images, labels


def main():
    torch.manual_seed(18)
    backbone, head = Backbone().eval(), nn.Linear(64, 4)
    optimizer = torch.optim.AdamW(head.parameters(), lr=0.02)
    for step in range(50):
        images, labels = digits(32)
        with torch.inference_mode():
            features = F.layer_norm(backbone(images), (64,))
            logits = head(features)
            accuracy = (logits.argmax(dim=1) == labels).float().mean().item()
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f} accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
