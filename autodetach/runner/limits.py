"""How much of the machine a run may use, and the words for when it wanted more."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from autodetach.runner.wire import MOST_EVENT_BYTES

_OF_THE_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
MEMORY_SHARE = 0.8
"""Of the machine's (or container's) memory: beyond, the kernel would soon end something of its own choice."""


def _most_memory() -> int:
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for place in _OF_THE_CONTAINER:
        with contextlib.suppress(OSError, ValueError):
            there = min(there, int(Path(place).read_text()))
    return int(there * MEMORY_SHARE)


@dataclass(frozen=True)
class Limits:
    """Bounds of one run. Sizes in bytes, times in seconds; ``None`` for no bound."""

    cpu: float | None = None
    """CPU seconds of the whole tree."""
    memory: int | None = field(default_factory=_most_memory)
    """Resident memory of the whole tree, shared pages counted once."""
    processes: int | None = 512
    scratch: int | None = 8 << 30
    """What the run may add to its scratch and its temp folder."""
    output: int = 256 << 10
    """The tail kept of each of stdout and stderr."""
    output_on_disk: int = 32 << 20
    ready: float = 120.0
    """How long the interpreter may take to import torch."""

    def rlimits(self) -> dict[str, int]:
        """What the server sets on the run's process: a second line, the tree is watched from outside."""
        wanted = {"core": 0}
        if self.cpu is not None:
            wanted["cpu"] = int(self.cpu) + 2
        if self.longest_file is not None:
            wanted["fsize"] = self.longest_file
        return wanted

    @property
    def longest_file(self) -> int | None:
        """Not less than what a program may print between two looks."""
        return None if self.scratch is None else max(self.scratch, 256 << 20)


def words(limit: str, limits: Limits) -> str:
    """What the program did when a limit struck, and the option that moves it: "used more than …"."""
    return {
        "memory": f"used more than {_size(limits.memory)} of memory; --max-memory allows more",
        "cpu": f"used more than {limits.cpu or 0:g} s of CPU time; --max-cpu allows more",
        "processes": f"had more than {limits.processes} processes; --max-processes allows more",
        "scratch": f"wrote more than {_size(limits.scratch)} to disk; --max-scratch allows more",
        "full": "filled the disk that its scratch copy is on; set TMPDIR to a place with room",
        "events": f"gave more than {_size(MOST_EVENT_BYTES)} of events to record; fewer steps before the failure help",
    }.get(limit, limit)


def cut_words(limits: Limits) -> str:
    """For output that was longer than what is kept."""
    return f"of its stdout and stderr the last {_size(limits.output)} were kept; --max-output keeps more"


def _size(amount: int | None) -> str:
    value = float(amount or 0)
    for unit in ("bytes", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} GiB"
