import torch


def bouncing_blob(frames, size):
    rows = torch.arange(size).view(-1, 1).float()
    cols = torch.arange(size).view(1, -1).float()
    y, x, dy, dx = 2.0, 3.0, 1.0, 0.7
    film = []
    for _ in range(frames):
        film.append(torch.exp(-((rows - y) ** 2 + (cols - x) ** 2) / 3).unsqueeze(0))
        y, x = y + dy, x + dx
        dy = -dy if not 1 < y < size - 2 else dy
        dx = -dx if not 1 < x < size - 2 else dx
    return torch.stack(film)
