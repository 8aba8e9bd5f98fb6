import torch


class RolloutBuffer:
    def __init__(self):
        self.observations, self.actions, self.rewards, self.values = [], [], [], []

    def add(self, observation, action, reward, value):
        self.observations.append(observation)
        self.actions.append(action)
        self.rewards.append(reward)
        self.values.append(value)

    def stacked(self, name):
        return torch.stack(getattr(self, name))

    def compute(self, last_value, gamma, lam):
        """Generalised advantage estimation, backwards through the rollout."""
        advantages, running = [], 0.0
        following = last_value
        for reward, value in zip(reversed(self.rewards), reversed(self.values)):
            delta = reward + gamma * following - value
            running = delta + gamma * lam * running
            advantages.insert(0, running)
            following = value
        self.advantages = torch.stack(advantages)
        self.returns = self.advantages + self.stacked("values")
