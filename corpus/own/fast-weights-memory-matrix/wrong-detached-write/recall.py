import itertools

import torch
from torch import nn, optim

torch.manual_seed(71)
KEYS, WIDTH = 6, 16


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Embedding(KEYS, WIDTH)
        self.value = nn.Linear(2, WIDTH)
        self.forget = nn.Parameter(torch.tensor(1.5))
        self.answer = nn.Linear(WIDTH, 2)

    def forward(self, memory, written, content, asked):
        address = self.key(written).softmax(dim=-1)
        memory = torch.sigmoid(self.forget) * memory + torch.outer(self.value(content), address).detach()
        found = memory @ self.key(asked).softmax(dim=-1)
        return self.answer(torch.tanh(found)), memory


def questions():
    table = torch.zeros(KEYS, 2)
    for turn in itertools.count(1):
        written = torch.randint(KEYS, ())
        table[written] = torch.randn(2)
        asked = written if turn % 2 else torch.randint(KEYS, ())
        yield turn, written, table[written].clone(), asked, table[asked].clone()


def train():
    model = Memory()
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    warm_up = optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, total_iters=20)
    memory, mean = torch.zeros(WIDTH, WIDTH), 0.0
    for turn, written, content, asked, truth in questions():
        guess, memory = model(memory, written, content, asked)
        loss = (guess - truth).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warm_up.step()
        memory = memory.detach()
        mean = 0.98 * mean + 0.02 * loss.item()
        if turn % 50 == 0:
            print(turn, round(mean, 4), flush=True)


train()
