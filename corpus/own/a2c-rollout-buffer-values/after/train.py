import argparse

import torch
from torch.distributions import Categorical

from agent import ActorCritic
from rollout import RolloutBuffer
from task import TiltTable


def collect(agent, env, observation, horizon):
    buffer = RolloutBuffer()
    for _ in range(horizon):
        with torch.no_grad():
            logits, value = agent(observation)
        action = Categorical(logits=logits).sample()
        following, reward = env.step(action)
        buffer.add(observation, action, reward, value)
        observation = following
    buffer.compute(agent(observation)[1].detach(), gamma=0.95, lam=0.9)
    return buffer, observation


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--passes", type=int, default=3)
    config = parser.parse_args()

    torch.manual_seed(30)
    env, agent = TiltTable(tables=4), ActorCritic(observations=2, actions=3)
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
    observation = env.reset()
    for update in range(config.updates):
        buffer, observation = collect(agent, env, observation, config.horizon)
        for _ in range(config.passes):
            logits, values = agent(buffer.stacked("observations"))
            policy = Categorical(logits=logits)
            actor_loss = -(policy.log_prob(buffer.stacked("actions")) * buffer.advantages).mean()
            critic_loss = (values - buffer.returns).pow(2).mean()
            loss = actor_loss + 0.5 * critic_loss - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        print(f"update {update}: reward {buffer.stacked('rewards').mean().item():.3f}")


if __name__ == "__main__":
    main()
