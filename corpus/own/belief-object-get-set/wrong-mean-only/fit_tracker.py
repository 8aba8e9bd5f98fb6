import torch

from belief import Belief
from tracker import Tracker, gaussian_nll


def simulate(frames, dims):
    position = torch.zeros(dims)
    velocity = 0.1 * torch.randn(dims)
    for _ in range(frames):
        velocity = velocity + 0.05 * torch.randn(dims)
        position = position + velocity
        yield position + 0.2 * torch.randn(dims), position


def main():
    torch.manual_seed(21)
    tracker = Tracker(dims=3)
    optimizer = torch.optim.RMSprop(tracker.parameters(), lr=2e-3)
    for clip in range(3):
        belief = Belief.unknown(dims=3)
        total = 0.0
        for frame, (seen, truth) in enumerate(simulate(40, 3)):
            optimizer.zero_grad()
            mean, log_var = tracker(seen, belief)
            loss = gaussian_nll(mean, log_var, truth)
            loss.backward()
            optimizer.step()
            belief.set(mean.detach(), log_var)
            total += float(loss)
        print(f"clip {clip}: nll {total / (frame + 1):.3f}")


if __name__ == "__main__":
    main()
