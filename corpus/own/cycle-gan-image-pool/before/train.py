import torch
import torch.nn as nn

from gan.networks import Discriminator, Generator
from gan.pool import ImagePool


def domains(count):
    flat = torch.rand(count, 1, 8, 8) * 0.3
    striped = flat.clone()
    striped[:, :, ::2] += 0.6
    return flat, striped


class Translator:
    def __init__(self):
        self.net_g, self.net_d = Generator(), Discriminator()
        self.pool = ImagePool(size=12)
        self.gan_loss, self.identity_loss = nn.MSELoss(), nn.L1Loss()
        self.optimizer_g = torch.optim.Adam(self.net_g.parameters(), lr=2e-3, betas=(0.5, 0.999))
        self.optimizer_d = torch.optim.Adam(self.net_d.parameters(), lr=1e-3, betas=(0.5, 0.999))
        self.schedulers = [torch.optim.lr_scheduler.StepLR(o, 10, gamma=0.5)
                           for o in (self.optimizer_g, self.optimizer_d)]

    def optimize_parameters(self, source, real):
        self.optimizer_g.zero_grad()
        fake = self.net_g(source)
        score = self.net_d(fake)
        loss_g = self.gan_loss(score, torch.ones_like(score)) + 0.5 * self.identity_loss(self.net_g(real), real)
        loss_g.backward()
        self.optimizer_g.step()

        self.optimizer_d.zero_grad()
        pooled = self.pool.query(fake)
        on_real, on_fake = self.net_d(real), self.net_d(pooled)
        loss_d = 0.5 * (self.gan_loss(on_real, torch.ones_like(on_real))
                        + self.gan_loss(on_fake, torch.zeros_like(on_fake)))
        loss_d.backward()
        self.optimizer_d.step()
        for scheduler in self.schedulers:
            scheduler.step()
        return loss_g.item(), loss_d.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    translator = Translator()
    for iteration in range(25):
        source, real = domains(6)
        loss_g, loss_d = translator.optimize_parameters(source, real)
        if iteration % 8 == 0:
            print(f"iteration {iteration}: G {loss_g:.3f} D {loss_d:.3f}")
