import argparse
from dataclasses import dataclass, field

import torch
import torch.nn as nn
from torch.distributions import Categorical


class Core(nn.Module):
    def __init__(self, inputs=2, width=16, actions=2):
        super().__init__()
        self.cell = nn.GRUCell(inputs, width)
        self.policy = nn.Linear(width, actions)
        self.value = nn.Linear(width, 1)

    def forward(self, x, hidden):
        hidden = self.cell(x, hidden)
        return Categorical(logits=self.policy(hidden)), self.value(hidden).squeeze(), hidden


class Parity:
    """Say whether the number of ones so far is odd; ones are rare."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(3)
        self.odd = 0

    def observe(self):
        one = int(torch.rand((), generator=self.generator) < 0.3)
        self.odd ^= one
        return torch.tensor([[float(one), 1.0]])

    def reward(self, action):
        return 1.0 if action == self.odd else -1.0


@dataclass
class Run:
    core: Core
    optimizer: torch.optim.Optimizer
    hidden: torch.Tensor
    rewards: list = field(default_factory=list)


def rollout(run, game, steps):
    hidden, terms = run.hidden, []
    for _ in range(steps):
        policy, value, hidden = run.core(game.observe(), hidden.detach())
        action = policy.sample()
        reward = game.reward(action.item())
        run.rewards.append(reward)
        terms.append((policy.log_prob(action).sum(), value, reward))
    run.hidden = hidden
    return terms


def update(run, terms, gamma=0.5):
    wanted, loss = 0.0, 0.0
    for log_prob, value, reward in reversed(terms):
        wanted = reward + gamma * wanted
        loss = loss + (value - wanted) ** 2 - log_prob * (wanted - value.item())
    run.optimizer.zero_grad()
    (loss / len(terms)).backward()
    nn.utils.clip_grad_norm_(run.core.parameters(), 1.0)
    run.optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--steps", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(64)
    core = Core()
    run = Run(core, torch.optim.Adam(core.parameters(), lr=args.lr), torch.zeros(1, 16))
    game = Parity()
    while True:
        update(run, rollout(run, game, args.steps))
        if len(run.rewards) % 160 == 0:
            print(f"{len(run.rewards)} moves, reward {sum(run.rewards[-160:]) / 160:.3f}", flush=True)


if __name__ == "__main__":
    main()
