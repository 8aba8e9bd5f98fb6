"""The patch alone, for ``git apply`` and ``patch -p1``."""

from __future__ import annotations

from autodetach.model import Outcome


class DiffReport:
    def render(self, *outcomes: Outcome) -> str:
        # Two programs may share a file and need the same patch.
        return "".join(dict.fromkeys(outcome.diff for outcome in outcomes))


make = DiffReport
