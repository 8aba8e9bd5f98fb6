import random
from collections import deque

import torch
import torch.nn as nn

SEED = 9
LENGTH = 8
GAMMA = 0.9
BATCH = 16


class Corridor:
    """Walk left or right; a reward waits at the right end."""

    def reset(self):
        self.place = 0
        return self.place

    def step(self, action):
        self.place = max(0, self.place + (1 if action == 1 else -1))
        done = self.place == LENGTH - 1
        return self.place, float(done) - 0.01, done


def encode(place):
    return nn.functional.one_hot(torch.tensor(place), LENGTH).float()


class Agent:
    def __init__(self):
        self.q = nn.Sequential(nn.Linear(LENGTH, 24), nn.Tanh(), nn.Linear(24, 2))
        self.optimizer = torch.optim.RMSprop(self.q.parameters(), lr=2e-3)
        self.memory = deque(maxlen=500)
        self.epsilon = 1.0

    def act(self, place):
        if random.random() < self.epsilon:
            return random.randrange(2)
        with torch.no_grad():
            return int(self.q(encode(place)).argmax())

    def remember(self, place, action, reward, following, done):
        future = 0.0 if done else GAMMA * self.q(encode(following)).max()
        target = reward + future
        self.memory.append((place, action, torch.as_tensor(target)))

    def learn(self):
        batch = random.sample(self.memory, BATCH)
        states = torch.stack([encode(place) for place, _, _ in batch])
        actions = torch.tensor([[action] for _, action, _ in batch])
        targets = torch.stack([target for _, _, target in batch])
        chosen = self.q(states).gather(1, actions).squeeze(1)
        loss = nn.functional.mse_loss(chosen, targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


random.seed(SEED)
torch.manual_seed(SEED)
world, agent = Corridor(), Agent()
ticks = 0
place = world.reset()
while True:
    action = agent.act(place)
    following, reward, done = world.step(action)
    agent.remember(place, action, reward, following, done)
    place = world.reset() if done else following
    ticks += 1
    if len(agent.memory) >= 4 * BATCH and ticks % 4 == 0:
        loss = agent.learn()
        agent.epsilon = max(0.1, agent.epsilon * 0.995)
        if ticks % 200 == 0:
            print(f"tick {ticks}: loss {loss:.5f}, epsilon {agent.epsilon:.2f}", flush=True)
