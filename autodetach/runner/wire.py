"""Reading what a run writes: events, output. Every byte is hostile, every size is bounded.

The parent opens the files before the run starts and reads through those descriptors only: a run that replaces
its events file by a link to somebody's key makes us read nothing.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

from autodetach.runner.server import LONGEST_LINE, parse_line

MOST_EVENT_BYTES = 64 << 20
_PAGE = 4096
_KEEP_SIZE_PUNCH_HOLE = 0x01 | 0x02


def create(path: Path) -> int:
    """A new, empty file, opened for reading and for cutting it short; nothing that was there before is
    followed.
    """
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0), 0o600)


class EventTail:
    """The events file of one run: complete lines, as they come."""

    def __init__(self, fd: int, *, most: int = MOST_EVENT_BYTES) -> None:
        self._fd, self._most = fd, most
        self._offset = 0
        self._pending = b""
        self._skipping = False
        self.dropped = 0
        """Lines that were no JSON object, too long, or not finished."""
        self.flooded = False

    def read(self) -> list[dict[str, Any]]:
        """The events that arrived since the last call."""
        events: list[dict[str, Any]] = []
        while not self.flooded:
            chunk = os.pread(self._fd, 1 << 18, self._offset)
            if not chunk:
                break
            self._offset += len(chunk)
            self.flooded = self._offset > self._most
            events.extend(self._lines(chunk))
        return events

    def finish(self) -> list[dict[str, Any]]:
        """The rest; a last line without its end is dropped."""
        events = self.read()
        self.dropped += bool(self._pending.strip()) and not self._skipping
        self._pending = b""
        return events

    def _lines(self, chunk: bytes) -> list[dict[str, Any]]:
        events = []
        *lines, rest = (self._pending + chunk).split(b"\n")
        for line in lines:
            if self._skipping:
                self._skipping = False
            elif len(line) > LONGEST_LINE or (line.strip() and (event := parse_line(line)) is None):
                self.dropped += 1
            elif line.strip():
                assert event is not None
                events.append(event)
        if len(rest) > LONGEST_LINE:
            self.dropped += not self._skipping
            self._skipping, rest = True, b""
        self._pending = rest
        return events


class OutputTail:
    """An output file that may grow without end: what is kept on disk is bounded, the last part survives.

    ``longest``: of a file that is hollow in front; the kernel lets no file of a run be longer than its share of disk.
    """

    def __init__(self, fd: int, *, on_disk: int, kept: int, longest: int = 1 << 30) -> None:
        self._fd, self._on_disk, self._kept, self._longest = fd, on_disk, kept, longest
        self._before = b""
        self._given_back = 0
        self.cut = False

    def bound(self) -> None:
        """Give room back when the file takes more than ``on_disk`` bytes, keeping its tail."""
        size = os.fstat(self._fd).st_size
        if size - self._given_back <= self._on_disk:
            return
        self.cut = True
        end = (size - self._kept) & -_PAGE
        if size < self._longest and end > self._given_back and _punch(self._fd, end):
            self._given_back = end
            return
        # What is written between reading and cutting is lost: wait for a moment of silence, but not for ever.
        for _ in range(50):
            self._before = self._last(size)
            before, size = size, os.fstat(self._fd).st_size
            if size == before:
                break
        os.ftruncate(self._fd, 0)
        self._given_back = 0

    def text(self) -> str:
        """The last ``kept`` bytes; what does not decode is replaced, escapes are left as they are."""
        size = os.fstat(self._fd).st_size
        both = self._before + self._last(size)
        self.cut = self.cut or size > self._kept
        return both[-self._kept :].decode("utf-8", "replace")

    def _last(self, size: int) -> bytes:
        # A writer without O_APPEND leaves a hole of zeros where the file was emptied.
        return os.pread(self._fd, self._kept, max(0, size - self._kept)).lstrip(b"\0")


def _punch(fd: int, end: int) -> bool:
    """Make the first ``end`` bytes of a file a hole, nothing behind them touched; False where that is not to be had."""
    try:
        punch = ctypes.CDLL(None, use_errno=True).fallocate
    except (OSError, AttributeError):
        return False
    return bool(punch(fd, _KEEP_SIZE_PUNCH_HOLE, ctypes.c_longlong(0), ctypes.c_longlong(end)) == 0)
