import torch
import torch.nn as nn

torch.manual_seed(41)


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(6, 8)
        self.left = nn.Linear(8, 1)
        self.right = nn.Linear(8, 1)


net = TwoTasks()
opt_left = torch.optim.SGD([*net.shared.parameters(), *net.left.parameters()], lr=0.05)
opt_right = torch.optim.SGD([*net.shared.parameters(), *net.right.parameters()], lr=0.05)
for step in range(20):
    x = torch.randn(16, 6)
    z = torch.tanh(net.shared(x))

    opt_left.zero_grad()
    loss_left = (net.left(z).squeeze(1) - x[:, 0]).pow(2).mean()
    loss_left.backward()
    opt_left.step()

    opt_right.zero_grad()
    loss_right = (net.right(z).squeeze(1) - x[:, 1]).pow(2).mean()
    loss_right.backward()
    opt_right.step()
    print(f"step {step}: left {loss_left.item():.4f}, right {loss_right.item():.4f}")
