"""Stands between us and the server, outside the confinement: what was started dies with it, whatever it does.

Run as a script by our own interpreter: ``guard.py LIFELINE COMMAND...`` where LIFELINE is the read end of a
pipe whose write end only the parent holds. The guard ends everything below it when the command ends, when the
lifeline breaks (the parent is gone, even by SIGKILL) or when it is told to by SIGTERM. As a child subreaper
it also inherits what the program tries to leave behind by forking twice.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def parents() -> dict[int, int]:
    """The parent of every process that can be seen."""
    if not os.path.isdir("/proc/self"):
        listing = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
        return {int(pid): int(parent) for pid, parent in (line.split() for line in listing.splitlines())}
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with (
                contextlib.suppress(OSError, ValueError, IndexError),
                open(f"/proc/{name}/stat", "rb") as file,
            ):
                # The name in parentheses may hold anything, also parentheses.
                found[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    return found


def descendants(root: int, known: dict[int, int] | None = None) -> list[int]:
    """Everything below ``root``, nearest first, without ``root`` itself."""
    children: dict[int, list[int]] = {}
    for pid, parent in (parents() if known is None else known).items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        found.extend(below)
        queue.extend(below)
    return found


def end_all(root: int, seconds: float = 10.0) -> bool:
    """Kill everything below ``root`` until nothing is left; True if that was reached in time."""
    deadline = time.monotonic() + seconds
    while True:
        _reap()
        below = descendants(root)
        if not below:
            return True
        # Stopped first, so that a fork bomb cannot outrun the killing.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in below:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)


def _reap() -> dict[int, int]:
    ended = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended[pid] = status
    return ended


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _spawn(command: list[str]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.execvp(command[0], command)
    except BaseException as error:
        os.write(2, f"cannot start {command[0]}: {error}\n".encode(errors="replace"))
    os._exit(127)


def main(argv: list[str]) -> int:
    lifeline, command = int(argv[1]), argv[2:]
    parent = os.getppid()
    os.set_inheritable(lifeline, False)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    told: list[int] = []
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    os.set_blocking(woken, False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: told.append(number))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    server = _spawn(command)
    # Ours are closed, so that the parent reads the end of the stream when the server goes.
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(silence, stream)
    status = None
    while status is None and not told and os.getppid() == parent:
        readable, _, _ = select.select([lifeline, woken], [], [], 1.0)
        if woken in readable:
            with contextlib.suppress(BlockingIOError):
                os.read(woken, 4096)
        if lifeline in readable:
            break
        status = _reap().get(server)
    end_all(os.getpid())
    if status is None:
        return 128 + signal.SIGKILL
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv))
