"""A controller learns to park a cart by differentiating through short stretches of simulation."""
import torch
import torch.nn as nn

DT = 0.05
STRETCH = 8


class Controller(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, place, speed, goal):
        return 3 * torch.tanh(self.net(torch.stack([place, speed, goal], dim=-1))).squeeze(-1)


def simulate(place, speed, force):
    speed = speed + DT * (force - 0.4 * speed - 0.1 * speed * speed.abs())
    place = place + DT * speed
    return place, speed


def main():
    torch.manual_seed(6)
    controller = Controller()
    optimizer = torch.optim.Adam(controller.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)
    carts = 16
    for episode in range(3):
        place, speed = torch.randn(carts), torch.zeros(carts)
        goal = torch.randn(carts)
        for stretch in range(15):
            cost = 0.0
            for _ in range(STRETCH):
                force = controller(place, speed, goal)
                place, speed = simulate(place, speed, force)
                cost = cost + ((place - goal) ** 2 + 0.01 * force ** 2).mean()
            optimizer.zero_grad()
            cost.backward()
            optimizer.step()
            scheduler.step()
            # next stretch starts from here, without the history
            place = place.detach()
            speed = speed.detach()
        miss = (place - goal).abs().mean()
        print(f"episode {episode}: mean miss {miss.item():.3f}")


if __name__ == "__main__":
    main()
