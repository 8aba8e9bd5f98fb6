"""Runs a candidate and holds it to the criteria."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from autodetach.diagnosis.recording import Recording
from autodetach.errors import SourceError
from autodetach.laboratory import Horizon, Laboratory
from autodetach.model import Candidate, Level, Passed, Rejected, Trial
from autodetach.source.apply import only_intended
from autodetach.source.book import SourceBook
from autodetach.source.diff import unified_diff
from autodetach.source.module import SourceModule
from autodetach.verification import criteria
from autodetach.verification.criteria import Spread, Verdict


@dataclass(frozen=True)
class Standard:
    """What candidates are held to.

    ``reference`` is the trajectory to be equalled, or None where no run can tell it; then ``fed`` names the parameters
    (optimizer, place) that every step has to feed, and the first step must be the broken program's.
    """

    broken: Recording
    reference: Recording | None
    progress: int
    spread: Spread = field(default_factory=Spread)
    fed: frozenset[tuple[int, int]] = frozenset()
    level: Level = Level.SAFE
    excuse_growth: bool = False
    """Whether the graph may grow where the reference's does: a leak that is not this fault's."""
    to_the_end: bool = False
    """Whether the reference ran to the program's own end, as the patched program then has to."""

    may_grow: bool = True
    """Whether a growth that the reference shows may be excused at all."""

    def tiers(self) -> tuple[Standard, ...]:
        """The strict standard first; where the reference itself grows, then the one that excuses it."""
        if self.may_grow and self.reference is not None and criteria.grows(self.reference.live):
            return (self, replace(self, excuse_growth=True))
        return (self,)


class Judge:
    """``below``: the folder, relative to the project's root, that the user stands in; diffs are relative to it."""

    def __init__(self, laboratory: Laboratory, book: SourceBook, below: str = "") -> None:
        self._laboratory, self._book, self._below = laboratory, book, below
        self._known: dict[tuple[str, bool, Spread], Trial] = {}
        self._seen: dict[tuple[str, int, bool], Recording] = {}

    def run_of(self, diff: str) -> Recording | None:
        """The run of the patched program, if there was one."""
        return next((seen for (of, *_), seen in self._seen.items() if of == diff), None)

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
        failed_at = standard.broken.failure.steps if standard.broken.failure else 0
        # where nothing tells how the graph should grow, it must not grow from the first step on
        most = standard.progress + standard.to_the_end
        horizon = Horizon(most=most, live_from=failed_at if standard.reference is not None else 0)
        seen = self._seen.get((diff, most, standard.reference is None))
        if seen is None:
            watch = {"watch_weights": True} if standard.reference is None else {}
            seen = self._laboratory.observe(horizon, patched, **watch).wait().recording
            self._seen[diff, most, standard.reference is None] = seen
        verdicts: list[Verdict] = []
        for check in self._checks(seen, standard, same_values):
            verdicts.append(check())
            if isinstance(verdicts[-1], Rejected):
                break
        return verdicts

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
                yield lambda: criteria.all_fed(seen, standard.fed)
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
