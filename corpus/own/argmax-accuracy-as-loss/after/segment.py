import torch
import torch.nn as nn

from dice import dice_loss


def scenes(count, size=12):
    images = 0.2 * torch.randn(count, 1, size, size)
    masks = torch.zeros(count, size, size, dtype=torch.long)
    for k in range(count):
        row, column = torch.randint(0, size - 5, (2,)).tolist()
        images[k, 0, row:row + 5, column:column + 5] += 1
        masks[k, row:row + 5, column:column + 5] = 1
    return images, masks


def main():
    torch.manual_seed(29)
    net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 3, padding=1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for step in range(1, 41):
        images, masks = scenes(8)
        loss = dice_loss(net(images), masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: dice loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
