import torch
import torch.nn as nn


class Actor(nn.Module):
    def __init__(self, states):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(states, 24), nn.ReLU(), nn.Linear(24, 1), nn.Tanh())

    def forward(self, state):
        return self.net(state)


class Critic(nn.Module):
    def __init__(self, states):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(states + 1, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, state, action):
        return self.net(torch.cat([state, action], dim=1))
