"""One run: what it said so far, how it ended, what it used."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from autodetach.runner.limits import Limits
from autodetach.runner.wire import EventTail, OutputTail, create

Ended = Literal["exit", "signal", "killed", "timeout", "limit", "lost"]
STOP = "stop"
"""The event by which a run says that its verdict is complete: it is ended at once."""


@dataclass(frozen=True)
class RunResult:
    """What came of a run.

    ``status`` is the exit code, or minus the signal's number; None where nobody saw the end. ``stdout`` and
    ``stderr`` are the last part of what was written, terminal escapes untouched (see
    ``report.plain``). ``root`` is the scratch root the run saw as its project; it is gone by now.
    ``limit`` says what the program did when a limit struck, to be read after its name: "used more than …".
    ``dropped`` counts events that were no valid lines.
    """

    events: tuple[dict[str, Any], ...]
    status: int | None
    ended: Ended
    stdout: str
    stderr: str
    root: str
    seconds: float
    limit: str = ""
    dropped: int = 0
    cut: bool = False
    """Whether stdout or stderr was longer than what is kept."""
    timeout: float = 0.0

    @property
    def death(self) -> str:
        """How the program ended other than by its own end, to be read after its name; empty for an end in peace."""
        if self.ended == "timeout":
            return f"ran for more than {self.timeout:g} s; --timeout allows more"
        if self.ended == "limit":
            return self.limit
        if self.ended == "lost":
            return "ended its runner, so that the run was lost"
        if self.ended == "killed" or not self.status:  # killed: by us, because it had said all
            return ""
        return f"ended with {end_in_words(self.status)}"


def end_in_words(status: int | None) -> str:
    """An exit status or minus a signal: "the signal SIGSEGV"."""
    if status is None or status >= 0:
        return f"exit status {status}"
    with contextlib.suppress(ValueError):
        name = signal.Signals(-status).name
        hint = ", as the kernel does it to programs when memory runs out" if -status == signal.SIGKILL else ""
        return f"the signal {name}{hint}"
    return f"the signal {-status}"


class Run:
    """A run under way. Its fields are the session's to change, under the session's lock."""

    def __init__(
        self,
        name: str,
        root: Path,
        wire: Path,
        timeout: float,
        limits: Limits,
        on_event: Callable[[dict[str, Any]], None] | None,
        end: Callable[[Run, Ended, str], None],
    ) -> None:
        self.name, self.root, self.timeout = name, root, timeout
        self._on_event, self._end = on_event, end
        self.paths = {kind: wire / f"{name}.{kind}" for kind in ("events", "stdout", "stderr")}
        self._fds = [create(path) for path in self.paths.values()]
        self._tail = EventTail(self._fds[0])
        longest = (limits.longest_file or 2 << 30) // 2
        sizes = {"on_disk": limits.output_on_disk, "kept": limits.output, "longest": longest}
        self._outputs = [OutputTail(fd, **sizes) for fd in self._fds[1:]]
        self._events: list[dict[str, Any]] = []
        self.stopped = False
        """It said that its verdict is complete."""
        self.begun = time.monotonic()
        self.deadline = self.begun + timeout
        self.copied = 0
        """Bytes of the copy that it started in."""
        self.pid: int | None = None
        """The id the server gave, which is another one outside its namespace."""
        self.ending: tuple[Ended, str] | None = None
        self.killed_at = 0.0
        self.ended_with: int | None = None
        self.over = False
        """The server said that it has ended, or the server is gone."""
        self._result: RunResult | None = None
        self._error: BaseException | None = None
        self._done = threading.Event()

    def poll(self) -> RunResult | None:
        """The result, or None while it runs."""
        return self._delivered() if self._done.is_set() else None

    def wait(self) -> RunResult:
        """The result, once it has ended. Raises what ``on_event`` raised, if it did."""
        # In slices, so that Ctrl-C is answered at once on every platform.
        while not self._done.wait(0.2):
            pass
        return self._delivered()

    def kill(self) -> None:
        """End it now; the result will say "killed"."""
        self._end(self, "killed", "")

    def _delivered(self) -> RunResult:
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def listen(self) -> None:
        """Take in new events and keep the outputs within bounds. Called by the monitor only."""
        self._take(self._tail.read())
        if self._tail.flooded:
            self._end(self, "limit", "events")
        for output in self._outputs:
            output.bound()

    def finish(self, limits_words: Callable[[str], str]) -> None:
        """Collect what is left and hand over the result. Called by the monitor only."""
        self._take(self._tail.finish())
        ended, limit = self.ending or self._natural_end()
        self._result = RunResult(
            events=tuple(self._events),
            status=self.ended_with,
            ended=ended,
            stdout=self._outputs[0].text(),
            stderr=self._outputs[1].text(),
            root=str(self.root),
            seconds=time.monotonic() - self.begun,
            limit=limits_words(limit),
            dropped=self._tail.dropped,
            cut=any(output.cut for output in self._outputs),
            timeout=self.timeout,
        )
        for fd in self._fds:
            os.close(fd)
        for path in self.paths.values():
            path.unlink(missing_ok=True)

    def deliver(self) -> None:
        self._done.set()

    def _natural_end(self) -> tuple[Ended, str]:
        if self.stopped:
            return "killed", ""  # it said that it was done, and ended before we could end it
        if self.ended_with is None:
            return "lost", ""
        if self.ended_with == -signal.SIGXCPU:
            return "limit", "cpu"  # the kernel was faster than our look from outside
        return ("exit" if self.ended_with >= 0 else "signal"), ""

    def _take(self, events: list[dict[str, Any]]) -> None:
        for event in events:
            if self.stopped:
                return
            self._events.append(event)
            if event.get("event") == STOP:
                self.stopped = True
                self._end(self, "killed", "")
            self._tell(event)

    def _tell(self, event: dict[str, Any]) -> None:
        if self._on_event is None or self._error is not None:
            return
        try:
            self._on_event(event)
        except BaseException as error:
            self._error = error
            self._end(self, "killed", "")

    def request(self, payload: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
        """The line that asks the server for this run. Ours wins over a payload that uses the same keys."""
        files = {kind: str(path) for kind, path in self.paths.items()}
        return {**payload, **extra, "id": self.name, "folder": str(self.root), **files}
