"""What the pipeline says while it works, and the one line on a terminal that shows it.

The pipeline knows only the protocol. On a terminal one line is redrawn in place; anywhere else nothing is
written, unless the user asked for more (``-v``): then each stage and each trial is a line of its own.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Mapping
from typing import Protocol, TextIO

from autodetach.model import Trial
from autodetach.report.plain import neutral, width

_MARKS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Progress(Protocol):
    def stage(self, name: str) -> None:
        """A part of the work begins: "running train.py", "reference run", "trying 3 patches"."""

    def update(self, text: str) -> None:
        """How far the stage has come: "step 12"."""

    def trial(self, trial: Trial) -> None:
        """A candidate was judged."""

    def done(self) -> None:
        """Nothing more will be said. May be called twice."""


class Silent:
    """Says nothing."""

    def stage(self, name: str) -> None:
        pass

    def update(self, text: str) -> None:
        pass

    def trial(self, trial: Trial) -> None:
        pass

    def done(self) -> None:
        pass


class Lines:
    """A line for each stage and trial, for logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def stage(self, name: str) -> None:
        print(f"autodetach: {neutral(name)}", file=self._stream, flush=True)

    def update(self, text: str) -> None:
        pass

    def trial(self, trial: Trial) -> None:
        self.stage(said_of(trial))

    def done(self) -> None:
        pass


class TerminalLine:
    """One line, redrawn a few times a second with a turning mark, and wiped at the end."""

    _PERIOD = 0.1

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._encoding = getattr(stream, "encoding", None) or "ascii"
        rich = _can_encode(_MARKS, self._encoding)
        self._marks, self._between = (_MARKS, " · ") if rich else ("-\\|/", ", ")
        self._name = self._text = ""
        self._begun = time.monotonic()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def stage(self, name: str) -> None:
        self._name, self._text, self._begun = neutral(name), "", time.monotonic()
        if self._thread is None:
            self._thread = threading.Thread(target=self._turn, daemon=True)
            self._thread.start()

    def update(self, text: str) -> None:
        self._text = neutral(text)

    def trial(self, trial: Trial) -> None:
        self._text = said_of(trial)

    def done(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._write("\r\x1b[2K")

    def _turn(self) -> None:
        turn = 0
        while not self._over.wait(self._PERIOD):
            seconds = time.monotonic() - self._begun
            parts = [self._name, self._text, f"{seconds:.0f} s" if seconds >= 2 else ""]
            line = f"{self._marks[turn % len(self._marks)]} {self._between.join(filter(None, parts))}"
            line = line.encode(self._encoding, "backslashreplace").decode(self._encoding)
            self._write("\r\x1b[2K" + _cut(line, shutil.get_terminal_size().columns - 1))
            turn += 1

    def _write(self, text: str) -> None:
        try:
            with self._lock:
                self._stream.write(text)
                self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone: the work goes on
            self._over.set()


def said_of(trial: Trial) -> str:
    """A trial in one line."""
    summary = neutral(trial.candidate.summary)
    return f"rejected: {summary}: {neutral(trial.reason)}" if trial.level is None else f"{trial.level}: {summary}"


def choose(stream: TextIO, environ: Mapping[str, str], quiet: bool, verbose: int) -> Progress:
    if quiet:
        return Silent()
    if _is_terminal(stream) and environ.get("TERM") != "dumb":
        return TerminalLine(stream)
    return Lines(stream) if verbose else Silent()


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """``NO_COLOR`` (no-color.org) before ``FORCE_COLOR`` before what the stream is."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return _is_terminal(stream) and environ.get("TERM") != "dumb"


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _can_encode(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _cut(line: str, columns: int) -> str:
    while line and width(line) > columns:
        line = line[:-1]
    return line
