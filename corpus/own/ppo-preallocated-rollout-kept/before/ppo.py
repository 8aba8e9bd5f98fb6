import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(3)
HORIZON, WORKERS, UPDATES, EPOCHS, MINIBATCHES = 16, 3, 12, 2, 2
GAMMA, CLIP = 0.97, 0.2


class Corridor:
    """A point drifts on a line; pushing it towards the middle pays."""

    def __init__(self, count):
        self.place = torch.randn(count)
        self.speed = torch.zeros(count)

    def observe(self):
        return torch.stack([self.place, self.speed], dim=1)

    def push(self, action):
        self.speed = 0.8 * self.speed + 0.2 * (action.float() - 0.5)
        self.place = (self.place + self.speed + 0.05 * torch.randn_like(self.place)).clamp(-2, 2)
        return self.observe(), -self.place.abs()


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 1))
        self.actor = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))

    def act(self, obs, action=None):
        policy = Categorical(logits=self.actor(obs))
        if action is None:
            action = policy.sample()
        return action, policy.log_prob(action), self.critic(obs).squeeze(-1)


env = Corridor(WORKERS)
agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)

obs = torch.zeros(HORIZON, WORKERS, 2)
actions = torch.zeros(HORIZON, WORKERS, dtype=torch.long)
logprobs = torch.zeros(HORIZON, WORKERS)
rewards = torch.zeros(HORIZON, WORKERS)
values = torch.zeros(HORIZON, WORKERS)

next_obs = env.observe()
for update in range(UPDATES):
    for t in range(HORIZON):
        obs[t] = next_obs
        action, logprob, value = agent.act(next_obs)
        values[t] = value
        actions[t] = action
        logprobs[t] = logprob
        next_obs, rewards[t] = env.push(action)

    with torch.no_grad():
        running = agent.critic(next_obs).squeeze(-1)
        returns = torch.zeros_like(rewards)
        for t in reversed(range(HORIZON)):
            running = rewards[t] + GAMMA * running
            returns[t] = running
        advantages = returns - values

    flat_obs, flat_actions = obs.reshape(-1, 2), actions.reshape(-1)
    flat_logprobs, flat_values = logprobs.reshape(-1), values.reshape(-1)
    flat_returns, flat_advantages = returns.reshape(-1), advantages.reshape(-1)
    for epoch in range(EPOCHS):
        for chosen in torch.randperm(HORIZON * WORKERS).chunk(MINIBATCHES):
            _, new_logprob, new_value = agent.act(flat_obs[chosen], flat_actions[chosen])
            ratio = (new_logprob - flat_logprobs[chosen]).exp()
            gain = flat_advantages[chosen]
            policy_loss = -torch.min(gain * ratio, gain * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
            moved = (new_value - flat_values[chosen]).clamp(-CLIP, CLIP)
            clipped = flat_values[chosen] + moved
            value_loss = torch.max((new_value - flat_returns[chosen]) ** 2, (clipped - flat_returns[chosen]) ** 2).mean()
            optimizer.zero_grad()
            (policy_loss + 0.5 * value_loss).backward()
            optimizer.step()
    print(f"update {update}: reward {rewards.mean().item():.3f}, value loss {value_loss.item():.3f}")
