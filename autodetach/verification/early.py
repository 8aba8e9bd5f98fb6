"""Ends the run of a wrong patch as soon as its verdict is sure: the comparisons of the criteria, step by step."""

from __future__ import annotations

from autodetach.diagnosis.reader import backward_of, step_of
from autodetach.model import Json, Passed, Rejected
from autodetach.verification import criteria
from autodetach.verification.criteria import Verdict
from autodetach.verification.standard import Standard


class Early:
    """Is told each event of a run as it comes, and answers whether the run need not go on.

    What it rejects, the criteria would reject as well, by the same comparison or by one that comes before it.
    """

    def __init__(self, standard: Standard, same_values: bool) -> None:
        self._standard, self._same_values = standard, same_values
        self._followed = (standard.reference or standard.broken).process
        self._names: dict[object, str] = {}  # of child processes; the program itself has none
        self._steps = 0
        self._largest = 0.0
        self.rejected: Rejected | None = None

    def __call__(self, event: Json) -> bool:
        if self.rejected is None:
            try:
                if event["event"] == "hello":
                    self._names[event["process"]] = str(event.get("name") or "")
                elif self._names.get(event["process"], "") == self._followed:
                    self.rejected = self._look(event)
            except (KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError):
                return False  # no event of ours: the recording will leave it out, too
        return self.rejected is not None

    @property
    def verdicts(self) -> list[Verdict]:
        """What was found, once something was."""
        if self.rejected is None:
            return []
        ran = Passed("runs", f"{self._steps} steps, and ended there")
        return [ran, self.rejected]

    def _look(self, event: Json) -> Rejected | None:
        standard = self._standard
        if event["event"] == "backward":
            backward = backward_of(event)
            if self._same_values and not self._steps:
                return criteria.other_value(backward, standard.broken, standard.spread)
        if event["event"] == "step" and standard.reference is not None:
            got = step_of(event)
            known = standard.reference.steps
            want = known[self._steps] if self._steps < len(known) else None
            self._steps += 1
            if want is not None:
                self._largest = max(self._largest, criteria.largest(want.grads))
                return criteria.apart(want, got, standard.spread, self._largest)
        return None
