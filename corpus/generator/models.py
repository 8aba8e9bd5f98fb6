"""Models without a memory: a body that makes ``features`` of shape (batch, hidden), and a head."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Body:
    """How a body is made and applied; ``shape`` is the shape of its input, see data.py."""

    shape: str
    init: tuple[str, ...]
    forward: tuple[str, ...]


BODIES = {
    "mlp": Body(
        "vector",
        ("self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())",),
        ("features = self.body($x)",),
    ),
    "linear": Body("vector", ("self.body = nn.Linear(inputs, hidden)",), ("features = self.body($x)",)),
    "relu": Body(
        "vector",
        ("self.first = nn.Linear(inputs, hidden)", "self.second = nn.Linear(hidden, hidden)"),
        ("features = F.relu(self.first($x))", "features = F.relu(self.second(features)) + features"),
    ),
    "signal": Body(
        "signal",
        ("self.conv = nn.Conv1d(inputs, hidden, kernel_size=3, padding=1)",),
        ("features = torch.relu(self.conv($x)).mean(dim=-1)",),
    ),
    "conv": Body(
        "image",
        ("self.conv = nn.Conv2d(inputs, hidden, 3, padding=1)", "self.norm = nn.GroupNorm(2, hidden)"),
        ("features = F.gelu(self.norm(self.conv($x)))", "features = features.mean(dim=(2, 3))"),
    ),
    "attention": Body(
        "sequence",
        (
            "self.query = nn.Linear(inputs, hidden)",
            "self.key = nn.Linear(inputs, hidden)",
            "self.value = nn.Linear(inputs, hidden)",
            "self.scale = hidden**-0.5",
        ),
        (
            "scores = self.query($x) @ self.key($x).transpose(1, 2) * self.scale",
            "features = (scores.softmax(dim=-1) @ self.value($x)).mean(dim=1)",
        ),
    ),
    "gru": Body(
        "sequence",
        ("self.rnn = nn.GRU(inputs, hidden, batch_first=True)",),
        ("_, last = self.rnn($x)", "features = last[-1]"),
    ),
    "lstm": Body(
        "sequence",
        ("self.rnn = nn.LSTM(inputs, hidden, batch_first=True)",),
        ("_, (last, _) = self.rnn($x)", "features = last.squeeze(0)"),
    ),
}


@dataclass(frozen=True)
class Cell:
    """One step of a model with a memory: ``parts`` are its tensors, ``zero`` the expression of each at the start.

    ``forward`` reads and rebinds the parts by the names ``{0}``, ``{1}``; ``output`` is what the head gets.
    """

    shape: str
    parts: tuple[str, ...]
    zero: str
    init: tuple[str, ...]
    forward: tuple[str, ...]
    output: str


CELLS = {
    "grucell": Cell(
        "vector",
        ("h",),
        "torch.zeros({size}, {hidden})",
        ("self.cell = nn.GRUCell(inputs, hidden)",),
        ("{0} = self.cell($x, {0})",),
        "{0}",
    ),
    "rnncell": Cell(
        "vector",
        ("h",),
        "torch.zeros({size}, {hidden})",
        ("self.cell = nn.RNNCell(inputs, hidden)",),
        ("{0} = self.cell($x, {0})",),
        "{0}",
    ),
    "elman": Cell(
        "vector",
        ("h",),
        "torch.zeros({size}, {hidden})",
        ("self.inp = nn.Linear(inputs, hidden)", "self.rec = nn.Linear(hidden, hidden, bias=False)"),
        ("{0} = torch.tanh(self.inp($x) + self.rec({0}))",),
        "{0}",
    ),
    "lstmcell": Cell(
        "vector",
        ("h", "c"),
        "torch.zeros({size}, {hidden})",
        ("self.cell = nn.LSTMCell(inputs, hidden)",),
        ("{0}, {1} = self.cell($x, ({0}, {1}))",),
        "{0}",
    ),
    "leaky": Cell(
        "vector",
        ("v", "trace"),
        "torch.zeros({size}, {hidden})",
        ("self.inp = nn.Linear(inputs, hidden)", "self.decay = nn.Parameter(torch.full((hidden,), 0.8))"),
        ("{0} = self.decay * {0} + self.inp($x)", "{1} = 0.7 * {1} + torch.sigmoid(4 * ({0} - 0.5))"),
        "{1}",
    ),
    "stack": Cell(
        "vector",
        ("lower", "upper"),
        "torch.zeros({size}, {hidden})",
        ("self.bottom = nn.GRUCell(inputs, hidden)", "self.top = nn.GRUCell(hidden, hidden)"),
        ("{0} = self.bottom($x, {0})", "{1} = self.top({0}, {1})"),
        "{1}",
    ),
    "gru": Cell(
        "chunk",
        ("h",),
        "torch.zeros(1, {size}, {hidden})",
        ("self.rnn = nn.GRU(inputs, hidden, batch_first=True)",),
        ("output, {0} = self.rnn($x, {0})",),
        "output",
    ),
    "lstm": Cell(
        "chunk",
        ("h", "c"),
        "torch.zeros(1, {size}, {hidden})",
        ("self.rnn = nn.LSTM(inputs, hidden, batch_first=True)",),
        ("output, ({0}, {1}) = self.rnn($x, ({0}, {1}))",),
        "output",
    ),
    "conv": Cell(
        "image",
        ("h",),
        "torch.zeros({size}, {hidden}, 6, 6)",
        ("self.conv = nn.Conv2d(inputs + hidden, hidden, 3, padding=1)",),
        ("{0} = torch.tanh(self.conv(torch.cat([$x, {0}], dim=1)))",),
        "{0}.mean(dim=(2, 3))",
    ),
    "attention": Cell(
        "vector",
        ("slots",),
        "torch.zeros({size}, 4, {hidden})",
        (
            "self.key = nn.Linear(inputs, hidden)",
            "self.write = nn.Linear(inputs, hidden)",
            "self.place = nn.Linear(inputs, 4)",
        ),
        (
            "gate = torch.softmax(self.place($x), dim=1).unsqueeze(2)",
            "{0} = (1 - gate) * {0} + gate * torch.tanh(self.write($x)).unsqueeze(1)",
            "scores = torch.softmax({0} @ self.key($x).unsqueeze(2), dim=1)",
        ),
        "(scores * {0}).sum(dim=1)",
    ),
}
