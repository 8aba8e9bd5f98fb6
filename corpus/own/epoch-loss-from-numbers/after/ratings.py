import torch
from torch import nn


class Factors(nn.Module):
    def __init__(self, people=30, films=20, rank=4):
        super().__init__()
        self.people, self.films = nn.Embedding(people, rank), nn.Embedding(films, rank)
        self.offset = nn.Parameter(torch.zeros(1))

    def forward(self, person, film):
        return (self.people(person) * self.films(film)).sum(dim=1) + self.offset


def ratings(count):
    person, film = torch.randint(0, 30, (count,)), torch.randint(0, 20, (count,))
    return person, film, torch.cos(0.3 * person) * torch.sin(0.5 * film) + 0.1 * torch.randn(count)


def epoch(model, chunks, optimizer):
    """One update from the mean loss of all chunks."""
    total, seen = 0.0, 0
    for person, film, rating in chunks:
        error = model(person, film) - rating
        total += (error ** 2).sum()
        seen += len(rating)
    loss = total / seen
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(8)
    model = Factors()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    data = ratings(400)
    chunks = list(zip(*(column.split(100) for column in data)))
    for number in range(30):
        loss = epoch(model, chunks, optimizer)
        if number % 10 == 9:
            print(f"epoch {number + 1}: {loss:.4f}")


main()
