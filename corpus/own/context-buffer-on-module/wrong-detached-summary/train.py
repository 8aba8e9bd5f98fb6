import torch
import torch.nn as nn


class StreamEncoder(nn.Module):
    """Encodes a chunk of a stream together with a running context of everything before it."""

    def __init__(self, features, width):
        super().__init__()
        self.project = nn.Sequential(nn.Linear(features, width), nn.Tanh())
        self.summary = nn.Linear(width, width)
        self.gate = nn.Parameter(torch.zeros(width))
        self.head = nn.Linear(2 * width, 1)
        self.register_buffer("context", torch.zeros(width))

    def forward(self, chunk):
        encoded = self.project(chunk)
        summary = torch.tanh(self.summary(encoded.mean(dim=0)))
        gate = torch.sigmoid(self.gate)
        mixed = gate * self.context + (1 - gate) * summary.detach()
        self.context = mixed.detach()
        return self.head(torch.cat([encoded, mixed.expand_as(encoded)], dim=-1)).squeeze(-1)


class StreamTrainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.criterion = nn.MSELoss()

    def train_step(self, chunk, target):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.criterion(self.model(chunk), target)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, stream):
        for step, (chunk, target) in enumerate(stream):
            loss = self.train_step(chunk, target)
            if step % 20 == 0:
                print(f"chunk {step:3d} loss {loss:.4f}")


def drifting_stream(chunks, size, features):
    level = torch.zeros(())
    for _ in range(chunks):
        level = 0.9 * level + 0.3 * torch.randn(())
        chunk = torch.randn(size, features) + level
        yield chunk, chunk[:, 0] - 0.5 * level


if __name__ == "__main__":
    torch.manual_seed(0)
    trainer = StreamTrainer(StreamEncoder(features=5, width=12), lr=3e-3)
    trainer.fit(drifting_stream(chunks=80, size=32, features=5))
