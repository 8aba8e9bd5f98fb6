import torch
import torch.nn.functional as F

from net import Pulse


def heartbeat(number, length):
    t = torch.arange(length).float()
    return torch.sin(t / (4 + number)) ** 5 + 0.05 * torch.randn(length)


def train_locally(number, weights, window=10, windows=6):
    model = Pulse()
    model.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    beat = heartbeat(number, window * windows + 1)
    hidden, total = None, 0.0
    for start in range(0, window * windows, window):
        inputs = beat[start:start + window].view(1, -1, 1)
        wanted = beat[start + 1:start + window + 1]
        predicted, hidden = model(inputs, hidden)
        loss = F.mse_loss(predicted.view(-1), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return {name: value.numpy() for name, value in model.state_dict().items()}, total / windows
