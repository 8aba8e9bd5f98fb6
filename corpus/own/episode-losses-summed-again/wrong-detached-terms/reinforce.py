import random

import torch
import torch.nn as nn
from torch.distributions import Bernoulli


class Thermostat:
    """Keep a room near 20 degrees by switching the heating."""

    def reset(self, rng):
        self.degrees = rng.uniform(14.0, 24.0)
        self.outside = rng.uniform(0.0, 10.0)
        return self.state()

    def state(self):
        return torch.tensor([(self.degrees - 20.0) / 5.0, (self.outside - 5.0) / 5.0])

    def step(self, heating):
        self.degrees += 1.4 * heating - 0.05 * (self.degrees - self.outside)
        return self.state(), -abs(self.degrees - 20.0) / 5.0


class Reinforce:
    def __init__(self, gamma=0.9):
        self.policy = nn.Sequential(nn.Linear(2, 12), nn.ReLU(), nn.Linear(12, 1))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=0.01)
        self.gamma = gamma
        self.policy_losses = []

    def play(self, env, rng, length=20):
        log_probs, rewards = [], []
        state = env.reset(rng)
        for _ in range(length):
            choice = Bernoulli(logits=self.policy(state).squeeze())
            action = choice.sample()
            log_probs.append(choice.log_prob(action))
            state, reward = env.step(action.item())
            rewards.append(reward)
        return log_probs, rewards

    def update(self, log_probs, rewards):
        returns, value = [], 0.0
        for reward in reversed(rewards):
            value = reward + self.gamma * value
            returns.insert(0, value)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        for log_prob, weight in zip(log_probs, returns):
            self.policy_losses.append(-log_prob * weight)
        loss = torch.stack(self.policy_losses).sum().detach().requires_grad_()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(31)
    rng = random.Random(31)
    env, learner = Thermostat(), Reinforce()
    for episode in range(30):
        log_probs, rewards = learner.play(env, rng)
        learner.update(log_probs, rewards)
        if episode % 10 == 9:
            print(f"episode {episode + 1}: reward {sum(rewards):.2f}")


if __name__ == "__main__":
    main()
