import torch
import torch.nn as nn


class AutoEncoder(nn.Module):
    def __init__(self, inputs=16, code=3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, 24), nn.ReLU(), nn.Linear(24, code))
        self.decoder = nn.Sequential(nn.Linear(code, 24), nn.ReLU(), nn.Linear(24, inputs))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Loop:
    """A small training loop with hooks."""

    def __init__(self, model, callbacks=()):
        self.model = model
        self.callbacks = list(callbacks)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        self.history = []

    @torch.no_grad()
    def validation_step(self, batch):
        return nn.functional.mse_loss(self.model(batch), batch).item()

    @torch.no_grad()
    def training_step(self, batch):
        noisy = batch + 0.1 * torch.randn_like(batch)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            restored = self.model(noisy)
        return nn.functional.mse_loss(restored.float(), batch)

    def fit(self, train_batches, valid_batch, epochs):
        for epoch in range(epochs):
            for batch in train_batches:
                loss = self.training_step(batch)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.history.append(self.validation_step(valid_batch))
            for callback in self.callbacks:
                callback(epoch, self)


def report(epoch, loop):
    print(f"epoch {epoch}: validation {loop.history[-1]:.4f}")


def low_rank(count):
    basis = torch.randn(3, 16, generator=torch.Generator().manual_seed(5))
    return torch.tanh(torch.randn(count, 3) @ basis)


if __name__ == "__main__":
    torch.manual_seed(26)
    data = low_rank(400)
    Loop(AutoEncoder(), callbacks=[report]).fit(data[:320].split(40), data[320:], epochs=4)
