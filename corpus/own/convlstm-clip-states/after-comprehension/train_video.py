import argparse

import torch
import torch.nn as nn

from models.convlstm import FramePredictor
from utils.film import bouncing_blob

CONFIG = {"channels": [1, 6, 6], "kernel": 3, "clip_length": 4, "size": 12, "lr": 2e-3}


def main():
    parser = argparse.ArgumentParser(description="next-frame prediction")
    parser.add_argument("--clips", type=int, default=20)
    parser.add_argument("--seed", type=int, default=4)
    opt = parser.parse_args()
    torch.manual_seed(opt.seed)

    film = bouncing_blob(opt.clips * CONFIG["clip_length"] + 1, CONFIG["size"])
    model = FramePredictor(CONFIG["channels"], CONFIG["kernel"])
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])

    states = None
    for clip in range(opt.clips):
        begin = clip * CONFIG["clip_length"]
        frames = film[begin:begin + CONFIG["clip_length"]]
        following = film[begin + 1:begin + 1 + CONFIG["clip_length"]]
        predicted, states = model(frames, states)
        loss = criterion(predicted, following)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        states = [(h.detach(), c.detach()) for h, c in states]
        print(f"clip {clip:2d}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
