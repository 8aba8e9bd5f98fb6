import torch
import torch.nn.functional as F

from networks import Actor, Critic


def replay(count):
    """One-step problem: the best action is the mean of the state."""
    state = torch.randn(count, 4)
    action = 2 * torch.rand(count, 1) - 1
    reward = -(action - state.mean(dim=1, keepdim=True)).pow(2)
    return state, action, reward


def main():
    torch.manual_seed(40)
    actor, critic = Actor(4), Critic(4)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-3)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2)
    for step in range(1, 61):
        state, action, reward = replay(64)
        critic_loss = F.mse_loss(critic(state, action), reward)
        actor_loss = -critic(state, actor(state)).mean().detach().requires_grad_()

        critic_optimizer.zero_grad()
        critic_loss.backward()
        critic_optimizer.step()

        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: critic {critic_loss.item():.4f} actor {actor_loss.item():.4f}")


if __name__ == "__main__":
    main()
