import torch

from ppo.policy import Policy
from ppo.rollout import collect
from ppo.update import ppo_update


def main():
    torch.manual_seed(14)
    policy = Policy(observations=3, actions=1)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3, eps=1e-5)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1 - k / 6)
    for iteration in range(5):
        rollout = collect(policy, steps=16, envs=4)
        policy_loss, value_loss = ppo_update(policy, optimizer, rollout, epochs=2, minibatch=16)
        schedule.step()
        print(f"{iteration}: policy {policy_loss:.4f} value {value_loss:.4f} reward {rollout['reward']:.3f}")


if __name__ == "__main__":
    main()
