"""How a whole ``fix`` grows: with the steps before the failure, the graph, source lines, files, bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.measure import environment, exponent, fix_command, timed

MIB = 1 << 20

PROGRAM = """\
import torch

torch.manual_seed(0)
torch.set_num_threads(1)
cell = torch.nn.GRUCell(3, 5)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.01)
state = torch.zeros(2, 5)
for step in range({last}):
    x = torch.randn(2, 3)
    optimizer.zero_grad()
    new = cell(x, state)
    loss = new.square().mean()
    loss.backward()
    optimizer.step()
    if step >= {keep}:
        state = new
"""
"""Fails one step after ``keep``."""

LONG_GRAPH = """\
import torch

torch.manual_seed(0)
torch.set_num_threads(1)
weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.01)
state = torch.ones(2)
for step in range(40):
    optimizer.zero_grad()
    for _ in range({nodes} if step == 0 else 3):
        state = torch.tanh(state * weight)
    state.sum().backward()
    optimizer.step()
"""


@dataclass(frozen=True)
class Growth:
    """Seconds of ``fix`` for each size, and the exponent of their growth."""

    what: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        return exponent(self.sizes, self.seconds)


def _program(folder: Path, keep: int = 2, padding: str = "") -> None:
    folder.joinpath("train.py").write_text(padding + PROGRAM.format(keep=keep, last=keep + 60))


def _steps(folder: Path, size: int) -> None:
    _program(folder, keep=size)


def _nodes(folder: Path, size: int) -> None:
    folder.joinpath("train.py").write_text(LONG_GRAPH.format(nodes=size // 2))


def _lines(folder: Path, size: int) -> None:
    function = "def unused_{0}(value):\n    if value:\n        return value + {0}\n    return None\n\n"
    _program(folder, padding="".join(function.format(i) for i in range(size // 5)))


def _files(folder: Path, size: int) -> None:
    _program(folder)
    for i in range(size):
        place = folder / f"part{i // 100}"
        place.mkdir(exist_ok=True)
        place.joinpath(f"module{i}.py").write_text(f"VALUE = {i}\n")


def _bytes(folder: Path, size: int) -> None:
    """Sparse files of at most 1 GiB: the size counts, and nobody's disk."""
    _program(folder)
    place, left, number = folder / "data", size, 0
    place.mkdir()
    while left > 0:
        with place.joinpath(f"part{number}.bin").open("wb") as file:
            file.truncate(min(left, 1 << 30))
        left, number = left - (1 << 30), number + 1


@dataclass(frozen=True)
class _Axis:
    make: Callable[[Path, int], None]
    quick: tuple[int, ...]
    usual: tuple[int, ...]
    full: tuple[int, ...]


AXES = {
    "steps before the failure": _Axis(_steps, (10, 40), (10, 100, 1000), (10, 100, 1000, 10_000)),
    "nodes of the graph": _Axis(_nodes, (), (100, 1000, 10_000, 100_000), (100, 1000, 10_000, 100_000, 1_000_000)),
    "source lines": _Axis(_lines, (), (100, 1000, 10_000), (100, 1000, 10_000, 100_000)),
    "project files": _Axis(_files, (), (1, 100, 1000, 10_000), (1, 100, 1000, 10_000)),
    "project bytes": _Axis(_bytes, (), (MIB, 1024 * MIB, 20 * 1024 * MIB), (MIB, 100 * MIB, 1 << 30, 20 << 30)),
}


def measure(how: str, rounds: int, only: Sequence[str] = ()) -> Iterator[Growth]:
    """``how``: quick, usual or full. Raises RuntimeError where a program was not repaired."""
    for name, axis in AXES.items():
        sizes = getattr(axis, how)
        if sizes and (not only or name in only):
            yield Growth(name, sizes, tuple(_seconds(axis.make, size, rounds) for size in sizes))


def _seconds(make: Callable[[Path, int], None], size: int, rounds: int) -> float:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name, "project")
        folder.mkdir()
        make(folder, size)
        folder.joinpath("setup.cfg").touch()
        command = fix_command("fix", "--timeout", "600", "train.py")
        took = [timed(command, folder, environment()) for _ in range(rounds)]
    if any(t.code for t in took):
        raise RuntimeError(f"a program of size {size} was not repaired:\n{took[0].err[-2000:]}")
    return median(t.wall for t in took)
