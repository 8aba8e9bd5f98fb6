"""How much of the machine a run may use, and the words for when it wanted more."""

from __future__ import annotations

import os
from dataclasses import dataclass, field


def _most_memory() -> int:
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 0.8)


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
        if self.scratch is not None:
            wanted["fsize"] = self.scratch
        return wanted


def words(limit: str, limits: Limits) -> str:
    """One clear line for a limit that struck."""
    return {
        "memory": f"the program used more than {_size(limits.memory)} of memory (--max-memory)",
        "cpu": f"the program used more than {limits.cpu or 0:g} s of CPU time (--max-cpu)",
        "processes": f"the program started more than {limits.processes} processes (--max-processes)",
        "scratch": f"the program wrote more than {_size(limits.scratch)} to disk (--max-scratch)",
        "events": "the program recorded more events than can be read",
    }.get(limit, limit)


def _size(amount: int | None) -> str:
    value = float(amount or 0)
    for unit in ("bytes", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} GiB"
