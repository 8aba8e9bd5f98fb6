import csv
from pathlib import Path

import torch
import torch.nn as nn

from nets import Encoder, Regressor

HERE = Path(__file__).resolve().parent


def read_stations(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    readings = torch.tensor([[float(row[f"h{hour:02d}"]) for hour in range(0, 24, 3)] for row in rows])
    altitude = torch.tensor([[float(row["altitude"])] for row in rows])
    return (readings - readings.mean()) / readings.std(), altitude / 1000.0


def stage_one(encoder, readings, steps=20):
    """Autoencode the day profiles."""
    decoder = nn.Linear(encoder.width, readings.size(1))
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.02)
    for _ in range(steps):
        loss = nn.functional.mse_loss(decoder(encoder(readings)), readings)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"stage one: {loss.item():.4f}")


def stage_two(encoder, readings, altitude, steps=30):
    """Predict the altitude from the codes."""
    codes = [encoder(row.unsqueeze(0)) for row in readings]
    regressor = Regressor(encoder.width)
    optimizer = torch.optim.Adam(regressor.parameters(), lr=0.01)
    for _ in range(steps):
        pick = torch.randint(len(codes), (16,)).tolist()
        batch = torch.cat([codes[k] for k in pick])
        loss = nn.functional.mse_loss(regressor(batch).detach().requires_grad_(), altitude[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"stage two: {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(70)
    readings, altitude = read_stations(HERE / "data" / "stations.csv")
    encoder = Encoder(readings.size(1))
    stage_one(encoder, readings)
    stage_two(encoder, readings, altitude)
