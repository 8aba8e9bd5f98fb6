import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def soften(teacher, inputs, noise):
    logits = teacher(inputs)
    return logits + noise * torch.randn_like(logits)


def distil(student, loader, args):
    optimizer = torch.optim.Adam(student.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        for inputs, labels, soft in loader:
            logits = student(inputs)
            hard_loss = F.cross_entropy(logits, labels)
            soft_loss = F.kl_div(F.log_softmax(logits / args.T, dim=1), F.softmax(soft / args.T, dim=1),
                                 reduction="batchmean") * args.T ** 2
            loss = args.alpha * soft_loss + (1 - args.alpha) * hard_loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: hard {hard_loss.item():.4f} soft {soft_loss.item():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--T", type=float, default=2.0)
    parser.add_argument("--alpha", type=float, default=0.7)
    parser.add_argument("--noise", type=float, default=0.1)
    args = parser.parse_args()

    torch.manual_seed(90)
    labels = torch.randint(4, (320,))
    inputs = 1.5 * torch.randn(4, 6)[labels] + torch.randn(320, 6)
    teacher = mlp(6, 64, 64, 4).eval()
    student = mlp(6, 12, 4)
    soft = soften(teacher, inputs, args.noise)
    loader = DataLoader(TensorDataset(inputs, labels, soft), batch_size=32, shuffle=True)
    distil(student, loader, args)
