"""A hard glimpse is chosen at random; the chooser learns by REINFORCE, the decoder by plain gradients."""
import torch
import torch.nn as nn
from torch.distributions import Categorical


class GlimpseModel(nn.Module):
    def __init__(self, patches, pixels):
        super().__init__()
        self.chooser = nn.Linear(patches * pixels, patches)
        self.decoder = nn.Sequential(nn.Linear(pixels, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, images):
        policy = Categorical(logits=self.chooser(images.flatten(1)))
        choice = policy.sample()
        glimpse = images[torch.arange(len(images)), choice]
        return self.decoder(glimpse).squeeze(-1), policy.log_prob(choice), policy.entropy()


def make_batch(size, patches=6, pixels=4):
    images = torch.randn(size, patches, pixels)
    images[:, 2] *= 2.0
    return images, images[:, 2].sum(dim=1)


def main(steps=120, decay=0.9):
    torch.manual_seed(5)
    model = GlimpseModel(6, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    baseline = torch.zeros(())
    for step in range(1, steps + 1):
        images, wanted = make_batch(64)
        guess, log_prob, entropy = model(images)
        score = -(guess.detach() - wanted) ** 2
        weight = score.detach() - baseline
        loss = -(score + log_prob * weight).mean() - 0.01 * entropy.mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        baseline = decay * baseline + (1 - decay) * score.mean()
        if step % 40 == 0:
            print(f"step {step}: score {score.mean().item():.3f} baseline {baseline.item():.3f}")


if __name__ == "__main__":
    main()
