import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, width), nn.LeakyReLU(0.2), nn.Linear(width, 1))

    def forward(self, points):
        return self.layers(points).squeeze(1)

    def clip(self, limit):
        """Keep the critic Lipschitz the simple way."""
        for weight in self.parameters():
            weight.clamp_(-limit, limit)


class Sampler(nn.Module):
    def __init__(self, noise=3, width=24):
        super().__init__()
        self.noise = noise
        self.layers = nn.Sequential(nn.Linear(noise, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, count):
        return self.layers(torch.randn(count, self.noise))


def ring(count):
    angle = 6.2832 * torch.rand(count, 1)
    return torch.cat([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(count, 2)


def main(rounds=12, critic_steps=3, batch=64, limit=0.05):
    torch.manual_seed(17)
    critic, sampler = Critic(), Sampler()
    critic_optimizer = torch.optim.RMSprop(critic.parameters(), lr=2e-3)
    sampler_optimizer = torch.optim.RMSprop(sampler.parameters(), lr=1e-3)
    for round_ in range(rounds):
        for _ in range(critic_steps):
            critic_optimizer.zero_grad()
            distance = critic(ring(batch)).mean() - critic(sampler(batch).detach()).mean()
            (-distance).backward()
            critic_optimizer.step()
            critic.clip(limit)
        sampler_optimizer.zero_grad()
        loss = -critic(sampler(batch)).mean()
        loss.backward()
        sampler_optimizer.step()
        print(f"round {round_}: distance {distance.item():.4f}")


if __name__ == "__main__":
    main()
