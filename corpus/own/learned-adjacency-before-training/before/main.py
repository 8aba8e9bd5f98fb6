import argparse

import torch

from traffic.data import synthetic_traffic, windows
from traffic.model import TrafficNet


def parse():
    parser = argparse.ArgumentParser(description="speed forecasts on a learned road graph")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--sensors", type=int, default=10)
    parser.add_argument("--history", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.01)
    return parser.parse_args()


def main():
    args = parse()
    torch.manual_seed(33)
    speeds = synthetic_traffic(args.sensors, 200)
    model = TrafficNet(args.sensors, args.history)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    adjacency = model.build_adjacency()
    for epoch in range(args.epochs):
        losses = []
        for history, following in windows(speeds, args.history, batch=32):
            predicted = model(history, adjacency)
            loss = torch.nn.functional.l1_loss(predicted, following)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: mae {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main()
