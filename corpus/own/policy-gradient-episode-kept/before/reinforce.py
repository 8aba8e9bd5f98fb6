import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

torch.manual_seed(17)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(3, 20)
        self.choice = nn.Linear(20, 2)
        self.log_probs = []
        self.rewards = []

    def forward(self, state):
        return F.softmax(self.choice(torch.tanh(self.hidden(state))), dim=-1)


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)


def select_action(state):
    distribution = Categorical(policy(state))
    action = distribution.sample()
    policy.log_probs.append(distribution.log_prob(action))
    return action.item()


def finish_episode(gamma=0.95):
    value, returns = 0.0, []
    for reward in reversed(policy.rewards):
        value = reward + gamma * value
        returns.insert(0, value)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    losses = [-log_prob * r for log_prob, r in zip(policy.log_probs, returns)]
    optimizer.zero_grad()
    loss = torch.stack(losses).sum()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    for episode in range(15):
        state = torch.tensor([0.0, 0.0, 1.0])
        policy.rewards = []
        for t in range(12):
            push = 1.0 if select_action(state) else -1.0
            speed = state[1] * 0.9 + 0.1 * push
            state = torch.stack([state[0] + speed, speed, torch.tensor(1.0)])
            policy.rewards.append(-abs(state[0].item() - 1.0))
        print(f"episode {episode}: return {sum(policy.rewards):.2f}, loss {finish_episode():.4f}")


if __name__ == "__main__":
    main()
