"""Runs a candidate and holds it to the criteria."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from autodetach.diagnosis.recording import Recording
from autodetach.errors import SourceError
from autodetach.laboratory import Experiment, Horizon, Laboratory
from autodetach.model import Candidate, Level, Passed, Rejected, Trial
from autodetach.source.apply import only_intended
from autodetach.source.book import SourceBook
from autodetach.source.diff import unified_diff
from autodetach.source.module import SourceModule
from autodetach.verification import criteria
from autodetach.verification.criteria import Spread, Verdict
from autodetach.verification.early import Early
from autodetach.verification.standard import Standard

Asked = tuple[str, int, bool, Spread]
"""What makes a run: the patch, how far it goes, whether there is no reference, and what is allowed for."""


@dataclass(frozen=True)
class _Attempt:
    """The run of a patch under way, and who would end it early."""

    experiment: Experiment
    early: Early | None


class Judge:
    """``below``: the folder, relative to the project's root, that the user stands in; diffs are relative to it.

    ``hurry``: a wrong patch's run ends once its verdict is sure, which may then be another than the first that a whole
    run would have failed by.
    """

    def __init__(self, laboratory: Laboratory, book: SourceBook, below: str = "", hurry: bool = False) -> None:
        self._laboratory, self._book, self._below, self._hurry = laboratory, book, below, hurry
        self._known: dict[tuple[str, bool, Spread], Trial] = {}
        self._seen: dict[tuple[str, int, bool], Recording] = {}
        self._ended: dict[Asked, list[Verdict]] = {}  # of runs that were ended early
        self._ahead: dict[Asked, _Attempt] = {}

    def run_of(self, diff: str) -> Recording | None:
        """The whole run of the patched program, if there was one."""
        return next((seen for (of, *_), seen in self._seen.items() if of == diff), None)

    def start(self, candidate: Candidate, standard: Standard) -> None:
        """Start the run that ``try_one`` will ask for, on another core than the one under way."""
        try:
            patched = self._book.patched(candidate.edits)
        except SourceError:
            return
        diff = self._diff(patched)
        asked, _ = self._asked(diff, standard)
        known = (diff, standard.excuse_growth, standard.spread) in self._known or asked[:3] in self._seen
        known = known or asked in self._ended or asked in self._ahead
        if not known and isinstance(self.intended(candidate, patched), Passed):
            self._ahead[asked] = self._attempt(diff, patched, standard, candidate.same_values)

    def abandon(self) -> None:
        """End what was started ahead and nobody asks for any more."""
        for attempt in self._ahead.values():
            attempt.experiment.end()
        self._ahead.clear()

    def try_one(self, candidate: Candidate, standard: Standard) -> Trial:
        """Run the patched program up to the reference's end and judge it. Every patch is run once."""
        begun = time.monotonic()
        try:
            patched = self._book.patched(candidate.edits)
        except SourceError as error:
            return Trial(candidate, "", (Rejected("only the intended change", str(error)),), None, 0.0)
        diff = self._diff(patched)
        key = (diff, standard.excuse_growth, standard.spread)
        if key in self._known:
            return self._known[key]
        verdicts = [self.intended(candidate, patched)]
        if isinstance(verdicts[0], Passed):
            verdicts += self.judge(diff, patched, standard, candidate.same_values)
        failed = any(isinstance(v, Rejected) for v in verdicts)
        level = None if failed else _weaker(candidate.level, standard.level)
        trial = Trial(candidate, diff, tuple(verdicts), level, time.monotonic() - begun)
        self._known[key] = trial
        return trial

    def _diff(self, patched: Mapping[str, bytes]) -> str:
        """Relative to where the user stands, unless a file lies elsewhere: then to the project's root."""
        prefix = f"{self._below}/" if self._below else ""
        if not all(name.startswith(prefix) for name in patched):
            prefix = ""
        old = {name.removeprefix(prefix): self._book.originals[name] for name in patched}
        return unified_diff(old, {name.removeprefix(prefix): data for name, data in patched.items()})

    def intended(self, candidate: Candidate, patched: Mapping[str, bytes]) -> Verdict:
        name = "only the intended change"
        for file, data in patched.items():
            module = self._book.module(file)
            if module is None:
                return Rejected(name, f"{file} cannot be edited")
            try:
                text = SourceModule.parse(file, data).text
                reason = only_intended(module, text, [e for e in candidate.edits if e.file == file])
            except SourceError as error:
                return Rejected(name, str(error))
            if reason:
                return Rejected(name, reason)
        return Passed(name)

    def judge(
        self, diff: str, patched: Mapping[str, bytes], standard: Standard, same_values: bool = True
    ) -> list[Verdict]:
        """Criteria 1 to 5 on a patched project, run once; stops at the first that fails."""
        if standard.reference is not None and standard.reference.death:
            return [Rejected("reference", f"there is nothing to compare with: the program {standard.reference.death}")]
        asked, _ = self._asked(diff, standard)
        if asked in self._ended:
            return self._ended[asked]
        seen = self._seen.get(asked[:3])
        if seen is None:
            ahead = self._ahead.pop(asked, None)
            attempt = ahead or self._attempt(diff, patched, standard, same_values)
            seen = attempt.experiment.wait().recording
            if ahead is not None and seen.death:  # two at once may want more than there is
                attempt = self._attempt(diff, patched, standard, same_values)
                seen = attempt.experiment.wait().recording
            if attempt.early is not None and attempt.early.rejected is not None:
                return self._ended.setdefault(asked, attempt.early.verdicts)
            self._seen[asked[:3]] = seen
        verdicts: list[Verdict] = []
        for check in self._checks(seen, standard, same_values):
            verdicts.append(check())
            if isinstance(verdicts[-1], Rejected):
                break
        return verdicts

    @staticmethod
    def _asked(diff: str, standard: Standard) -> tuple[Asked, Horizon]:
        failed_at = standard.broken.failure.steps if standard.broken.failure else 0
        # where nothing tells how the graph should grow, it must not grow from the first step on
        most = standard.progress + standard.to_the_end
        horizon = Horizon(most=most, live_from=failed_at if standard.reference is not None else 0)
        return (diff, most, standard.reference is None, standard.spread), horizon

    def _attempt(self, diff: str, patched: Mapping[str, bytes], standard: Standard, same_values: bool) -> _Attempt:
        _, horizon = self._asked(diff, standard)
        watch = {"watch_weights": True} if standard.reference is None else {}
        early = Early(standard, same_values) if self._hurry else None
        return _Attempt(self._laboratory.observe(horizon, patched, until=early, **watch), early)

    @staticmethod
    def _checks(seen: Recording, standard: Standard, same_values: bool) -> Iterable[Callable[[], Verdict]]:
        reference = standard.reference
        runs_out = reference is None and not standard.to_the_end
        yield lambda: criteria.runs(seen, standard.broken, standard.progress, runs_out, standard.to_the_end)
        if same_values:
            yield lambda: criteria.same_values(seen, standard.broken, standard.spread)
        if reference is not None:
            yield lambda: criteria.same_training(seen, reference, standard.spread)
        else:
            yield lambda: criteria.same_first_step(seen, standard.broken, standard.spread)
            if standard.broken.steps or any(optimizer >= 0 for optimizer, _ in standard.fed):
                yield lambda: criteria.all_fed(seen, standard.broken, standard.fed)
            else:
                yield lambda: criteria.all_fed_by_hand(seen, standard.broken)
            yield lambda: criteria.fresh_weights(seen)
        yield lambda: criteria.nobody_starves(seen, standard.broken, reference)
        yield lambda: criteria.no_growth(
            seen,
            reference if standard.excuse_growth else None,
            None if standard.excuse_growth else reference,
        )


def _weaker(a: Level, b: Level) -> Level:
    order = [Level.SAFE, Level.UNSAFE, Level.DISPLAY_ONLY]
    return max(a, b, key=order.index)
