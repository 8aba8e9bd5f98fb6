import queue
import threading

import torch
import torch.nn as nn
import torch.nn.functional as F


class Learner(threading.Thread):
    """Takes batches from a queue and trains until it receives None."""

    def __init__(self, batches):
        super().__init__(daemon=True)
        self.batches = batches
        self.model = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 2))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.trend = torch.tensor(1.0)
        self.steps = 0

    def run(self):
        while (batch := self.batches.get()) is not None:
            observations, rewards = batch
            self.learn(observations, rewards)

    def learn(self, observations, rewards):
        loss = F.mse_loss(self.model(observations), rewards)
        worse = torch.relu(loss - self.trend)
        self.optimizer.zero_grad()
        (loss + 0.5 * worse ** 2).backward()
        self.optimizer.step()
        self.trend = 0.9 * self.trend + 0.1 * loss.detach()
        self.steps += 1
        if self.steps % 20 == 0:
            print(f"learner: step {self.steps}, trend {self.trend.item():.4f}", flush=True)


def act(generator):
    observations = torch.randn(32, 4, generator=generator)
    left = observations[:, :2].sum(dim=1)
    right = observations[:, 2:].prod(dim=1)
    return observations, torch.stack([left, right], dim=1)


def main():
    torch.manual_seed(47)
    generator = torch.Generator().manual_seed(48)
    batches = queue.Queue()
    learner = Learner(batches)
    learner.start()
    for _ in range(60):
        batches.put(act(generator))
    batches.put(None)
    learner.join()
    print(f"learner made {learner.steps} steps")


if __name__ == "__main__":
    main()
