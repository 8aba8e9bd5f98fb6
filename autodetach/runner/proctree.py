"""What a process tree uses, seen from outside."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass

from autodetach.runner.guard import descendants

MARKER = "AUTODETACH_SESSION"
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    processes: int
    resident: int
    """Bytes; pages shared by several processes count in each."""
    cpu: float
    """Seconds, children that have ended included."""


def usage(pids: Iterable[int]) -> Usage:
    """Sum over the processes that still are."""
    processes = resident = ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
            if fields[0] != b"Z":
                processes += 1
            ticks += sum(int(field) for field in fields[11:15])
            resident += int(fields[21]) * _PAGE
    return Usage(processes, resident, ticks / _TICKS)


def proportional(pids: Iterable[int]) -> int:
    """Resident bytes with shared pages divided among their users: exact, and slow to ask for."""
    return sum(_proportional(pid) for pid in pids)


def _proportional(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    # A process can forbid the question.
    return usage([pid]).resident


def inner_pid(pid: int) -> int:
    """The id by which a process knows itself in its innermost namespace."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith(b"NSpid:"):
                return int(line.split()[-1])
    return pid


def end_marked(marker: str, seconds: float = 3.0) -> None:
    """Kill what still carries a session's marker in its environment: a tree whose guard was killed."""
    wanted = f"{MARKER}={marker}".encode()
    deadline = time.monotonic() + seconds
    while found := _marked(wanted):
        for top in found:
            for pid in (top, *descendants(top)):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(0.005)


def _marked(wanted: bytes) -> list[int]:
    if not os.path.isdir("/proc/self"):
        return []
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            # A zombie's environment is empty, so what has been killed is not found again.
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if wanted in file.read(1 << 20).split(b"\0"):
                    found.append(int(name))
    return found
