"""Signals while a session is open: they unwind the stack, and more of them do not disturb the cleaning up."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


class Unwinding:
    """SIGTERM and SIGHUP end the program as Ctrl-C does, through every ``with``; only where nobody else
    handles them.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}

    def begin(self) -> None:
        """Does nothing outside the main thread, which alone may set handlers."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                self._before[number] = signal.signal(number, _leave)

    def end(self) -> None:
        before, self._before = self._before, {}
        for number, handler in before.items():
            with contextlib.suppress(ValueError):
                signal.signal(number, handler)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """A second Ctrl-C must not stop the cleaning up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
