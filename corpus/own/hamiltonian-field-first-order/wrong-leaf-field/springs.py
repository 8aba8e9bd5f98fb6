import torch
import torch.nn as nn


class EnergyNet(nn.Module):
    def __init__(self, pairs, width=32):
        super().__init__()
        self.pairs = pairs
        self.energy = nn.Sequential(
            nn.Linear(2 * pairs, width), nn.Softplus(),
            nn.Linear(width, width), nn.Softplus(),
            nn.Linear(width, 1, bias=False),
        )

    def field(self, state):
        """dq/dt = dH/dp and dp/dt = -dH/dq for the energy H."""
        state = state.requires_grad_(True)
        slope, = torch.autograd.grad(self.energy(state).sum(), state)
        dq, dp = slope.split(self.pairs, dim=1)
        return torch.cat([dp, -dq], dim=1).requires_grad_()


def spring_data(count):
    q, p = torch.randn(count, 1), torch.randn(count, 1)
    return torch.cat([q, p], dim=1), torch.cat([p, -1.5 * q], dim=1)


def main():
    torch.manual_seed(3)
    states, rates = spring_data(400)
    net = EnergyNet(pairs=1)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=1e-5)
    for epoch in range(1, 7):
        for index in torch.randperm(len(states)).split(50):
            predicted = net.field(states[index])
            loss = nn.functional.mse_loss(predicted, rates[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
