"""The story for a human: what failed, why, what cures it, what was tried, and on what the proof rests."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from autodetach.model import Diagnosis, Failure, Level, Outcome, Passed, Span, Status, Trial
from autodetach.report.plain import neutral
from autodetach.report.sources import Sources
from autodetach.report.words import CAUSES, FAILURES, NOTHING_TO_REPAIR, device, proof

_WIDTH = 100
_RED, _GREEN, _YELLOW, _DIM, _BOLD = "31", "32", "33", "2", "1"


@dataclass(frozen=True)
class TextReport:
    colour: bool = False
    all: bool = False
    """Every candidate with all its verdicts, instead of those that are needed to understand the choice."""
    verbose: int = 0

    def render(self, *outcomes: Outcome) -> str:
        return "\n".join(self._one(outcome) for outcome in outcomes)

    def _one(self, outcome: Outcome) -> str:
        parts = [list(part) for part in self._parts(outcome)]
        return "\n\n".join("\n".join(part) for part in parts if part) + "\n"

    def _parts(self, outcome: Outcome) -> Iterator[Iterator[str] | list[str]]:
        sources, shown = Sources(outcome.originals), set[Span]()
        if outcome.diagnosis is not None:
            yield self._failure(outcome.diagnosis.failure, sources, shown)
            yield self._why(outcome.diagnosis, sources, shown)
        else:
            yield self._without_diagnosis(outcome)
        yield self._remedy(outcome)
        yield self._tried(outcome)
        if outcome.diagnosis is not None and outcome.chosen is None:
            yield self._ways_out(outcome.diagnosis)
        yield self._footer(outcome)

    def _failure(self, failure: Failure, sources: Sources, shown: set[Span]) -> Iterator[str]:
        steps, passes = _count(failure.steps, "optimizer step"), _count(failure.backwards, "backward pass")
        yield self._paint(f"{FAILURES[failure.kind]}, after {steps} and {passes}", _RED, _BOLD)
        yield from _wrapped(neutral(_first_sentence(failure.message)), "  ")
        for depth, frame in enumerate(failure.chain):
            called = "in" if depth == 0 else "called from"
            yield f"  {called} {neutral(frame.function)}, {neutral(frame.span.place)}"
            if depth == 0:
                yield from self._excerpt(frame.span, sources, shown)

    def _why(self, diagnosis: Diagnosis, sources: Sources, shown: set[Span]) -> Iterator[str]:
        yield self._paint(f"why: {diagnosis.cause}", _BOLD)
        yield from _wrapped(CAUSES[diagnosis.cause], "  ")
        for number, evidence in enumerate(diagnosis.evidence, 1):
            place = f"{neutral(evidence.span.place)}: " if evidence.span else ""
            yield from _wrapped(f"{place}{neutral(evidence.text)}", f"  {number}. ")
            if evidence.span:
                yield from self._excerpt(evidence.span, sources, shown, evidence.text)

    def _excerpt(self, span: Span, sources: Sources, shown: set[Span], said: str = "") -> Iterator[str]:
        """The source at ``span``, the first time that the story comes by, unless it was ``said`` already."""
        excerpt = None if span in shown else sources.excerpt(span)
        shown.add(span)
        if excerpt is not None and excerpt.text not in said:
            yield f"       {excerpt.text}"
            yield f"       {self._paint(excerpt.marks, _DIM)}"

    def _without_diagnosis(self, outcome: Outcome) -> Iterator[str]:
        if outcome.status is Status.CLEAN:
            yield self._paint(NOTHING_TO_REPAIR, _GREEN)
        elif outcome.status is Status.FAILED_OTHERWISE:
            yield self._paint("the program failed, but not with an error that autodetach repairs", _RED, _BOLD)
        elif outcome.status is Status.NOT_REACHED:
            yield self._paint("the program did not come to a failure within the limits", _YELLOW, _BOLD)
        for line in outcome.detail.rstrip("\n").split("\n") if outcome.detail.strip() else ():
            yield f"  {neutral(line)}"

    def _remedy(self, outcome: Outcome) -> Iterator[str]:
        if outcome.chosen is None:
            return
        level = outcome.chosen.level or Level.UNSAFE
        yield (self._paint(f"remedy: {neutral(outcome.chosen.candidate.summary)}", _BOLD) + f"  {self._level(level)}")
        yield from self._verdicts(outcome.chosen)
        yield f"  {proof(outcome)}"

    def _tried(self, outcome: Outcome) -> Iterator[str]:
        """What lost against the chosen patch: all with ``--all``, else only those that came before it."""
        trials = outcome.trials
        if outcome.chosen in trials and not self.all:
            trials = trials[: trials.index(outcome.chosen)]
        others = [trial for trial in trials if trial != outcome.chosen]
        if others:
            yield self._paint("also tried:" if outcome.chosen else "tried:", _BOLD)
        for trial in others:
            yield from self._one_trial(trial)

    def _one_trial(self, trial: Trial) -> Iterator[str]:
        size = f"{_count(trial.candidate.changed_lines, 'line')}"
        yield f"  {self._level(trial.level)} {neutral(trial.candidate.summary)} ({size})"
        if trial.reason:
            yield from _wrapped(neutral(trial.reason), "      ")
        if self.all or self.verbose:
            yield from self._verdicts(trial)
        if self.all or trial.level is not None:
            yield from (f"      {neutral(line)}" for line in trial.diff.rstrip("\n").split("\n"))

    def _verdicts(self, trial: Trial) -> Iterator[str]:
        for verdict in trial.verdicts:
            if isinstance(verdict, Passed):
                detail = f": {neutral(verdict.detail)}" if verdict.detail else ""
                yield from _wrapped(f"{verdict.criterion}{detail}", f"  {self._paint('passed', _GREEN)} ", 9)
            else:
                text = f"{verdict.criterion}: {neutral(verdict.reason)}"
                yield from _wrapped(text, f"  {self._paint('failed', _RED)} ", 9)

    def _ways_out(self, diagnosis: Diagnosis) -> Iterator[str]:
        if diagnosis.ways_out:
            yield self._paint("no patch is safe here; the ways out, and what each means:", _BOLD)
        for way in diagnosis.ways_out:
            yield from _wrapped(neutral(way), "  - ")

    def _footer(self, outcome: Outcome) -> Iterator[str]:
        for note in outcome.notes:
            yield from _wrapped(f"note: {neutral(note)}", "")
        if self.verbose:
            isolation = outcome.isolation or "none"
            yield f"interpreter: {neutral(outcome.interpreter)} (torch {neutral(outcome.torch)})"
            yield f"isolation: {isolation}; device: {device(outcome)}; {outcome.seconds:.1f} s"

    def _level(self, level: Level | None) -> str:
        colour = {Level.SAFE: _GREEN, Level.UNSAFE: _YELLOW, Level.DISPLAY_ONLY: _YELLOW, None: _RED}[level]
        return self._paint(f"[{level or 'rejected'}]", colour)

    def _paint(self, text: str, *codes: str) -> str:
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if self.colour and text else text


def _first_sentence(message: str) -> str:
    """PyTorch's messages go on with advice (retain_graph=True, anomaly mode) that leads astray here."""
    return re.split(r"(?<=\.)\s|\n", message.strip(), maxsplit=1)[0]


def _count(number: int, noun: str) -> str:
    plural = {"backward pass": "backward passes"}.get(noun, noun + "s")
    return f"{number} {noun if number == 1 else plural}"


def _wrapped(text: str, lead: str, indent: int | None = None) -> list[str]:
    """``text`` in lines, the first after ``lead``, the others ``indent`` deep (default: lead's length)."""
    hanging = " " * (len(lead) if indent is None else indent)
    lines = textwrap.wrap(text, _WIDTH - len(hanging), break_long_words=False, break_on_hyphens=False) or [""]
    return [lead + lines[0], *(hanging + line for line in lines[1:])]


make = TextReport
