"""What a format is, and how one is found by name. A new format is one new file
of its name here, and its name in ``settings.FORMATS``."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from autodetach.model import Outcome


class Report(Protocol):
    def render(self, *outcomes: Outcome) -> str:
        """The outcomes in this format, ending in a newline unless there is nothing to say.

        Bytes of a source file that are not UTF-8 come as lone surrogates (``surrogateescape``).
        """


def make(name: str) -> Report:
    """The report of that name, with its own defaults. Only the module that is asked for is imported."""
    return cast(Report, import_module(f"autodetach.report.{name}").make())
