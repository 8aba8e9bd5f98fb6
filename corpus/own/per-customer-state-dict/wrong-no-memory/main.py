import random

import torch
import torch.nn.functional as F

from shop.model import NextBasket
from shop.log import visits

CUSTOMERS = 240
PRODUCTS = 12


def main():
    torch.manual_seed(11)
    rng = random.Random(11)
    model = NextBasket(PRODUCTS, width=16)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    seen, total = 0, 0.0
    for customer, basket, following in visits(rng, CUSTOMERS, PRODUCTS, rounds=2):
        logits = model(customer, torch.tensor(basket))
        loss = F.cross_entropy(logits, torch.tensor([following]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += 1
        total += loss.item()
        if seen % 120 == 0:
            print(f"{seen} visits, loss {total / 120:.3f}")
            total = 0.0


if __name__ == "__main__":
    main()
