"""The thread that watches the runs: events as they come, time, memory, processes, disk."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Container
from pathlib import Path

from autodetach.runner import proctree
from autodetach.runner.guard import descendants, parents
from autodetach.runner.limits import Limits, words
from autodetach.runner.run import Ended, Run
from autodetach.runner.scratch import Scratch

_EVENTS_EVERY = 0.02
_USAGE_EVERY = 0.1
_DISK_EVERY = 0.5
_KILL_PATIENCE = 2.0
_SMALLEST_ROOM = 16 << 10
"""Bytes free, below which a disk counts as full."""


class Monitor:
    """``end`` kills one run for a reason, ``escalate`` the whole server, ``finished`` clears up after one."""

    def __init__(
        self,
        limits: Limits,
        scratch: Scratch,
        end: Callable[[Run, Ended, str], None],
        escalate: Callable[[], None],
        finished: Callable[[Run], None],
    ) -> None:
        self._limits, self._scratch = limits, scratch
        self._end, self._escalate, self._finished = end, escalate, finished
        self._runs: list[Run] = []
        self._wake = threading.Condition()
        self._stopping = False
        self._tick = threading.Event()
        self._guard = -1
        self._cpu_before: dict[str, float] = {}
        self._shared_before: dict[str, int] = {}
        self._usage_due = self._disk_due = 0.0
        self._thread = threading.Thread(target=self._loop, name="autodetach-monitor", daemon=True)
        self._thread.start()

    def attach(self, guard: int) -> None:
        """Everything below the guard's process is the session's."""
        self._guard = guard

    def watch(self, run: Run) -> None:
        """From now on, until it is over."""
        with self._wake:
            self._runs.append(run)
        self._shared_before[run.name] = self._shared()
        with self._wake:
            self._wake.notify()

    def look(self) -> None:
        """Something happened: do not wait for the next look."""
        self._tick.set()

    def stop(self) -> None:
        """Hand over what is left (the session has marked it as over) and end the thread."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread is not threading.current_thread():
            self._thread.join(10.0)

    def _loop(self) -> None:
        while True:
            with self._wake:
                while not self._runs and not self._stopping:
                    self._wake.wait()
                runs = list(self._runs)
                if not runs:
                    return
            for run in runs:
                self._look_at(run)
            self._measure([run for run in runs if not run.over])
            if not any(run.over for run in runs):
                self._tick.wait(_EVENTS_EVERY)
                self._tick.clear()

    def _look_at(self, run: Run) -> None:
        if run.over:
            if run.ending is None or run.stopped:
                if self._too_much(run, at_end=True):
                    run.ending = ("limit", "scratch")
                elif _is_full(self._scratch.folder):
                    run.ending = ("limit", "full")  # what it reported may be incomplete, too
            with self._wake:
                self._runs.remove(run)
            self._cpu_before.pop(run.name, None)
            self._shared_before.pop(run.name, None)
            run.finish(lambda limit: words(limit, self._limits) if limit else "")
            run.deliver()
            self._finished(run)
            return
        run.listen()
        now = time.monotonic()
        if now > run.deadline:
            self._end(run, "timeout", "")
        if run.ending is not None and run.killed_at and now > run.killed_at + _KILL_PATIENCE:
            self._escalate()

    def _measure(self, runs: list[Run]) -> None:
        now = time.monotonic()
        if runs and now >= self._usage_due:
            known = parents()
            for run, pids in self._trees(runs, known):
                self._check_usage(run, pids)
            self._usage_due = now + max(_USAGE_EVERY, 10 * (time.monotonic() - now))
        if runs and self._limits.scratch is not None and now >= self._disk_due:
            for run in runs:
                if self._too_much(run):
                    self._end(run, "limit", "scratch")
            self._disk_due = now + max(_DISK_EVERY, 10 * (time.monotonic() - now))

    def _trees(self, runs: list[Run], known: dict[int, int]) -> list[tuple[Run, list[int]]]:
        """Which processes are whose. What cannot be told apart counts for the only run, or else for the
        newest.
        """
        everything = descendants(self._guard, known)
        by_name = {proctree.inner_pid(pid): pid for pid in everything} if len(runs) > 1 else {}
        trees = []
        left = set(everything)
        for run in runs:
            top = by_name.get(run.pid) if run.pid is not None else None
            pids = [] if top is None else [top, *descendants(top, known)]
            left.difference_update(pids)
            trees.append((run, pids))
        trees[-1][1].extend(left)
        return trees

    def _check_usage(self, run: Run, pids: list[int]) -> None:
        used = proctree.usage(pids)
        limits = self._limits
        if limits.processes is not None and used.processes > limits.processes:
            self._end(run, "limit", "processes")
        elif limits.cpu is not None and used.cpu - self._cpu_before.setdefault(run.name, used.cpu) > limits.cpu:
            self._end(run, "limit", "cpu")
        elif (
            limits.memory is not None and used.resident > limits.memory and proctree.proportional(pids) > limits.memory
        ):
            self._end(run, "limit", "memory")

    def _too_much(self, run: Run, at_end: bool = False) -> bool:
        """Whether the run has written more than it may; at its end also if it is just that much, because then the
        kernel may have refused to let a file grow."""
        most = self._limits.scratch
        if most is None:
            return False
        own = _size(run.root.parent) + _size(self._scratch.temp / run.name) - run.copied
        written = own + self._shared() - self._shared_before.get(run.name, 0)
        return written > most or (at_end and written == most)

    def _shared(self) -> int:
        """What lies in the writable places and in no run's own: other runs' doing, or hidden there by one."""
        with self._wake:
            known = {name for run in self._runs for name in (run.root.parent.name, run.name)}
            known |= {path.name for run in self._runs for path in run.paths.values()}
        places = (self._scratch.runs, self._scratch.temp, self._scratch.caches, self._scratch.wire)
        return sum(_size(place, known) for place in places)


def _is_full(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        there = os.statvfs(folder)
        return there.f_bavail * there.f_frsize < _SMALLEST_ROOM
    return False


def _size(folder: Path, leave_out: Container[str] = ()) -> int:
    """Bytes allocated below a folder; ``leave_out`` are names right in it."""
    total = 0
    queue = [str(folder)]
    while queue:
        with contextlib.suppress(OSError), os.scandir(queue.pop()) as entries:
            for entry in entries:
                if entry.name in leave_out:
                    continue
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        queue.append(entry.path)
                    else:
                        # What is allocated, not what a sparse file claims to be.
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
        leave_out = ()
    return total
