import numpy as np
import torch
import torch.nn as nn


def spectral_distance(output, target):
    """Mean distance of log magnitudes of the spectra."""
    a = np.abs(np.fft.rfft(output.detach().numpy(), axis=-1))
    b = np.abs(np.fft.rfft(target.detach().numpy(), axis=-1))
    return torch.tensor(np.mean(np.abs(np.log1p(a) - np.log1p(b))))


class Filter(nn.Module):
    def __init__(self, taps=9):
        super().__init__()
        self.conv = nn.Conv1d(1, 1, taps, padding=taps // 2, bias=False)

    def forward(self, x):
        return self.conv(x.unsqueeze(1)).squeeze(1)


if __name__ == "__main__":
    torch.manual_seed(35)
    np.random.seed(35)
    low_pass = torch.hann_window(9, periodic=False)
    low_pass = (low_pass / low_pass.sum()).view(1, 1, -1)
    net = Filter()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for step in range(40):
        x = torch.from_numpy(np.random.randn(16, 64)).float()
        with torch.no_grad():
            target = nn.functional.conv1d(x.unsqueeze(1), low_pass, padding=4).squeeze(1)
        loss = spectral_distance(net(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step + 1}: {loss.item():.4f}")
