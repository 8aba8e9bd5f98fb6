"""What a run may do, and what a mechanism that sees to it looks like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

GUARANTEES = (
    "writes outside the scratch",
    "reading secrets",
    "network",
    "unix sockets of the machine",
    "signals to other processes",
    "seeing other processes",
    "changing modes and times of other files",
    "leftover processes",
)
"""The words a mechanism says of itself: each is either enforced or not."""


@dataclass(frozen=True)
class Policy:
    """The rights of a run. All paths are absolute and resolved."""

    writable: tuple[Path, ...]
    temp: Path
    """The private folder that stands for ``/tmp`` where a mechanism can arrange that; also writable."""
    readable: tuple[Path, ...] = ()
    """Must stay readable even inside a hidden place: the project, the interpreter."""
    hidden: tuple[Path, ...] = ()
    """Secrets: neither readable nor writable."""
    network: bool = False
    accelerators: bool = True
    """Whether the device nodes of GPUs and the like are passed on."""
    shared_memory: int = 0
    """Bytes of /dev/shm, where it can be private; 0 for the machine's default."""


class Mechanism(Protocol):
    """One way to confine a process. ``probe`` really tries it; nothing is assumed from versions."""

    @property
    def name(self) -> str: ...

    @property
    def enforces(self) -> tuple[str, ...]: ...

    @property
    def not_enforced(self) -> tuple[str, ...]: ...

    def probe(self) -> str | None:
        """Why the mechanism does not work here, or None if it does."""
        ...

    def command(self, argv: Sequence[str], policy: Policy) -> list[str]:
        """The command that runs ``argv`` confined."""
        ...


def rest_of(enforced: Sequence[str]) -> tuple[str, ...]:
    """The guarantees that are not among ``enforced``, in their fixed order."""
    return tuple(word for word in GUARANTEES if word not in enforced)
