"""How much to order each morning? Double Q-learning that goes on for as long as the shop is open."""
import copy
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

CAPACITY, ORDERS = 10, 4


def make_net():
    return nn.Sequential(nn.Linear(1, 24), nn.ReLU(), nn.Linear(24, ORDERS))


class Shop:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.stock = 5

    def day(self, order):
        stock = min(CAPACITY, self.stock + order)
        sold = min(stock, self.rng.choice((0, 1, 1, 2, 3)))
        self.stock = stock - sold
        return self.stock, 1.0 * sold - 0.1 * self.stock - 0.2 * order


def as_batch(transitions):
    stock, order, reward, following = zip(*transitions)
    scale = lambda values: torch.tensor(values).float().unsqueeze(1) / CAPACITY
    return scale(stock), torch.tensor(order).unsqueeze(1), torch.tensor(reward), scale(following)


def update(q_net, target_net, optimizer, transitions, gamma=0.9):
    stock, order, reward, following = as_batch(transitions)
    with torch.no_grad():
        best = q_net(following).argmax(dim=1, keepdim=True)
        predicted = q_net(stock).gather(1, order).squeeze(1)
        future = target_net(following).gather(1, best).squeeze(1)
        wanted = reward + gamma * future
    loss = F.huber_loss(predicted, wanted)
    optimizer.zero_grad()
    loss.requires_grad_(True)
    loss.backward()
    nn.utils.clip_grad_norm_(q_net.parameters(), 10.0)
    optimizer.step()
    return loss.item()


torch.manual_seed(66)
shop, rng = Shop(66), random.Random(67)
q_net = make_net()
target_net = copy.deepcopy(q_net)
optimizer = torch.optim.Adam(q_net.parameters(), lr=2e-3)
memory, day = [], 0
while True:
    stock, order = shop.stock, rng.randrange(ORDERS)
    following, reward = shop.day(order)
    memory.append((stock, order, reward, following))
    day += 1
    if day >= 64:
        loss = update(q_net, target_net, optimizer, rng.sample(memory, 32))
        if day % 20 == 0:
            target_net.load_state_dict(q_net.state_dict())
            print(f"day {day}: loss {loss:.4f}", flush=True)
