import torch
import torch.nn as nn

torch.manual_seed(31)


def mlp(inputs, outputs, width=16):
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, outputs))


class Trainer:
    def __init__(self, latent=4):
        self.latent = latent
        self.generator = mlp(latent, 2)
        self.discriminator = mlp(2, 1)
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=1e-3)
        self.opt_d = torch.optim.Adam(self.discriminator.parameters(), lr=1e-3)
        self.bce = nn.BCEWithLogitsLoss()

    def step(self, real):
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        self.opt_g.zero_grad()
        self.opt_d.zero_grad()

        fake = self.generator(torch.randn(len(real), self.latent))
        d_loss = self.bce(self.discriminator(real), ones) + self.bce(self.discriminator(fake), zeros)
        d_loss.backward()
        self.opt_d.step()

        g_loss = self.bce(self.discriminator(fake), ones)
        g_loss.backward()
        self.opt_g.step()
        return d_loss.item(), g_loss.item()


trainer = Trainer()
for batch in range(30):
    d_loss, g_loss = trainer.step(torch.randn(16, 2) * 0.3 + 2)
    print(f"batch {batch}: D {d_loss:.4f} G {g_loss:.4f}")
