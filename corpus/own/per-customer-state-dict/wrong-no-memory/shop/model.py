import torch
from torch import nn


class NextBasket(nn.Module):
    """Predicts a customer's next product from all of the customer's visits so far."""

    def __init__(self, products, width):
        super().__init__()
        self.items = nn.EmbeddingBag(products, width, mode="mean")
        self.memory = nn.GRUCell(width, width)
        self.score = nn.Linear(width, products)
        self.width = width
        self.states = {}

    def forward(self, customer, basket):
        if customer not in self.states:
            self.states[customer] = torch.zeros(1, self.width)
        state = self.memory(self.items(basket.unsqueeze(0)), self.states[customer])
        return self.score(state)
