import torch
import torch.nn as nn


class ActorCritic(nn.Module):
    def __init__(self, observations, actions, width=24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(observations, width), nn.Tanh())
        self.actor = nn.Linear(width, actions)
        self.critic = nn.Linear(width, 1)

    def forward(self, observation):
        hidden = self.body(observation)
        return self.actor(hidden), self.critic(hidden).squeeze(-1)
