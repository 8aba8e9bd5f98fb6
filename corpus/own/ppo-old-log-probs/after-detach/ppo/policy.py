import torch
import torch.nn as nn
from torch.distributions import Normal


class Policy(nn.Module):
    def __init__(self, observations, actions, width=32):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(observations, width), nn.Tanh(), nn.Linear(width, actions))
        self.v = nn.Sequential(nn.Linear(observations, width), nn.Tanh(), nn.Linear(width, 1))
        self.log_std = nn.Parameter(torch.full((actions,), -0.5))

    def distribution(self, obs):
        return Normal(self.pi(obs), self.log_std.exp())

    def evaluate(self, obs, action):
        dist = self.distribution(obs)
        return dist.log_prob(action).sum(-1), dist.entropy().sum(-1), self.v(obs).squeeze(-1)
