import torch
import torch.nn as nn


class ConvLSTMCell(nn.Module):
    def __init__(self, inputs, hidden, kernel):
        super().__init__()
        self.hidden = hidden
        self.gates = nn.Conv2d(inputs + hidden, 4 * hidden, kernel, padding=kernel // 2)

    def blank(self, like):
        shape = (like.size(0), self.hidden, like.size(2), like.size(3))
        return like.new_zeros(shape), like.new_zeros(shape)

    def forward(self, x, state):
        h, c = state
        i, f, o, g = self.gates(torch.cat([x, h], dim=1)).chunk(4, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


class FramePredictor(nn.Module):
    def __init__(self, channels, kernel):
        super().__init__()
        self.cells = nn.ModuleList(ConvLSTMCell(a, b, kernel) for a, b in zip(channels, channels[1:]))
        self.paint = nn.Conv2d(channels[-1], channels[0], 1)

    def forward(self, frames, states=None):
        if states is None:
            states = [cell.blank(frames[:1]) for cell in self.cells]
        painted = []
        for frame in frames:
            x = frame.unsqueeze(0)
            for level, cell in enumerate(self.cells):
                x, c = cell(x, states[level])
                states[level] = (x, c)
            painted.append(self.paint(x).squeeze(0))
        return torch.stack(painted), states
