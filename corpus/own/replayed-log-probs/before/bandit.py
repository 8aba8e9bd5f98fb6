import random
from collections import deque

import torch
import torch.nn as nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self, contexts=5, arms=4):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(contexts, 24), nn.ReLU(), nn.Linear(24, arms))

    def forward(self, context):
        return Categorical(logits=self.net(context))


def reward_of(context, arm):
    return float(context[arm]) + 0.1 * random.gauss(0, 1)


def update(policy, optimizer, memory, size):
    batch = random.sample(memory, size)
    mean = sum(reward for *_, reward in batch) / size
    loss = 0
    for context, arm, log_prob, reward in batch:
        loss = loss - log_prob * (reward - mean)
    loss = loss / size
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return mean


def main():
    random.seed(13)
    torch.manual_seed(13)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
    memory = deque(maxlen=128)
    for turn in range(160):
        context = torch.randn(5)
        choices = policy(context)
        arm = choices.sample()
        memory.append((context, arm, choices.log_prob(arm), reward_of(context, arm)))
        if len(memory) >= 32 and turn % 4 == 0:
            mean = update(policy, optimizer, memory, 16)
            if turn % 40 == 0:
                print(f"turn {turn}: reward {mean:.3f}")


if __name__ == "__main__":
    main()
