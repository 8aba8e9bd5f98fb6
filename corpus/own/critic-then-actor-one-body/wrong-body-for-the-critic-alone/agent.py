import argparse

import torch
import torch.nn as nn



class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.actor = nn.Linear(32, 2)
        self.critic = nn.Linear(32, 1)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=3e-3)

    def learn(self, state, action, reward):
        self.optimizer.zero_grad()
        features = self.body(state)
        value = self.critic(features).squeeze(1)
        value_loss = (value - reward).pow(2).mean()
        value_loss.backward()
        advantage = (reward - value).detach()
        log_prob = torch.log_softmax(self.actor(features.detach()), 1).gather(1, action[:, None]).squeeze(1)
        policy_loss = -(log_prob * advantage).mean()
        policy_loss.backward()
        self.optimizer.step()
        return value_loss.item(), policy_loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    agent = Agent()
    for update in range(args.updates):
        state = torch.randn(16, 4)
        action = torch.randint(0, 2, (16,))
        value_loss, policy_loss = agent.learn(state, action, state[:, 0] * (2.0 * action - 1))
        print(f"update {update}: value {value_loss:.4f}, policy {policy_loss:.4f}")


if __name__ == "__main__":
    main()
