import torch
import torch.nn as nn

torch.manual_seed(8)
WINDOW, FEATURES, HIDDEN = 10, 3, 12


class Tracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(FEATURES, HIDDEN)
        self.head = nn.Linear(HIDDEN, 1)

    def forward(self, reading, hidden):
        hidden = self.cell(reading, hidden)
        return self.head(hidden), hidden


def recording(length, tracks):
    phase = torch.rand(tracks) * 6.28
    clock = torch.arange(length, dtype=torch.float32).unsqueeze(1)
    place = torch.sin(0.2 * clock + phase)
    readings = torch.stack([place + 0.1 * torch.randn_like(place) for _ in range(FEATURES)], dim=2)
    return readings, place.unsqueeze(2)


def train_window(model, optimizer, readings, places, hidden):
    optimizer.zero_grad()
    estimates = torch.zeros(places.shape)
    for t in range(len(readings)):
        estimates[t], hidden = model(readings[t], hidden)
    loss = nn.functional.mse_loss(estimates, places)
    loss.backward()
    optimizer.step()
    return loss.item(), hidden.detach()


def main():
    model = Tracker()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    readings, places = recording(200, 4)
    hidden = torch.zeros(4, HIDDEN)
    for start in range(0, 200, WINDOW):
        stop = start + WINDOW
        loss, hidden = train_window(model, optimizer, readings[start:stop], places[start:stop], hidden)
        print(f"{start:4d}: {loss:.5f}")


if __name__ == "__main__":
    main()
