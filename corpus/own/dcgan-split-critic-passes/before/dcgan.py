import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
LATENT, BATCH = 6, 12


class Painter(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(LATENT, 8, 4, 1, 0, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(True),
            nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, noise):
        picture = self.main(noise)
        return picture


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(8, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, picture):
        verdict = self.main(picture)
        return verdict.view(-1, 1).squeeze(1)


def stripes(count):
    base = torch.zeros(count, 1, 8, 8)
    base[:, :, ::2] = 1.0
    return (base + 0.1 * torch.randn_like(base)).clamp(0, 1) * 2 - 1


painter, critic = Painter(), Critic()
criterion = nn.BCELoss()
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))
painter_optimizer = torch.optim.Adam(painter.parameters(), lr=1e-3, betas=(0.5, 0.999))
loader = DataLoader(TensorDataset(stripes(96)), batch_size=BATCH, shuffle=True)

for epoch in range(2):
    for (real,) in loader:
        critic.zero_grad()
        label = torch.full((len(real),), 1.0)
        output = critic(real)
        loss_real = criterion(output, label)
        loss_real.backward()

        noise = torch.randn(len(real), LATENT, 1, 1)
        fake = painter(noise)
        label.fill_(0.0)
        output = critic(fake)
        loss_fake = criterion(output, label)
        loss_fake.backward()
        critic_optimizer.step()

        painter.zero_grad()
        label.fill_(1.0)
        output = critic(fake)
        loss_painter = criterion(output, label)
        loss_painter.backward()
        painter_optimizer.step()
    print(f"epoch {epoch}: critic {loss_real.item() + loss_fake.item():.4f}, painter {loss_painter.item():.4f}")
