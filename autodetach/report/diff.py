"""The patch alone, for ``git apply`` and ``patch -p1``."""

from __future__ import annotations

from autodetach.model import Outcome


class DiffReport:
    def render(self, outcome: Outcome) -> str:
        return outcome.diff


make = DiffReport
