"""What repairs of a single call's error are told: where a run mended it on the fly, and the files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from autodetach.diagnosis.findings import Point, Reading, points_at
from autodetach.diagnosis.recording import Mended, Recording
from autodetach.model import Candidate, Edit, Failure, Frame, Level
from autodetach.repairs.interface import candidate
from autodetach.source.book import SourceBook
from autodetach.source.expression import Expression
from autodetach.source.statement import Statement

MOST_RANKS = 6

Option = tuple[str, tuple[Edit, ...], int]
"""One way to repair a site, in words, as edits, and its preference: the lower the better."""


@dataclass(frozen=True)
class Mending:
    """``recording`` is that of the run that mended the error wherever it came up; ``caught``: sites that need no
    repair, for the program itself goes on from the error there. ``followed``: that of a run in which the tensors in
    question were followed through the program."""

    failure: Failure
    recording: Recording
    book: SourceBook
    caught: frozenset[str] = frozenset()
    followed: Recording | None = None

    @cached_property
    def sites(self) -> Mapping[str, tuple[Mended, ...]]:
        """The sites to repair, in the order of their first failing."""
        found: dict[str, list[Mended]] = {}
        for each in self.recording.mended:
            if each.kind is self.failure.kind and each.site not in self.caught:
                found.setdefault(each.site, []).append(each)
        return {site: tuple(some) for site, some in found.items()}

    @property
    def values(self) -> tuple[tuple[str, int, int], ...]:
        """The kinds of tensors in question."""
        found = (each.value for some in self.sites.values() for each in some)
        return tuple(dict.fromkeys(value for value in found if value is not None))

    @cached_property
    def ways(self) -> Mapping[Reading, frozenset[int]]:
        """Each site and kind of tensor in question, with the places that all of that kind passed on their way to it."""
        found: dict[Reading, frozenset[int]] = {}
        for each in self.followed.mended if self.followed is not None else ():
            if each.site in self.sites:
                key = (each.site, each.value)
                found[key] = found[key] & each.places if key in found else each.places
        return found

    @cached_property
    def readings(self) -> frozenset[Reading]:
        return frozenset((site, each.value) for site, some in self.sites.items() for each in some)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """The expressions that such tensors pass, in the order of first passing."""
        useful = frozenset().union(*self.ways.values())
        passed = self.followed.places if self.followed is not None else {}
        places = (place for number, place in sorted(passed.items()) if number in useful)
        return tuple(p for p in points_at(self.book, places) if not p.expression.is_target)

    def cut_at(self, point: Point) -> frozenset[Reading]:
        """The readings all of whose ways pass the point."""
        numbers = frozenset(point.places.values())
        return frozenset(reading for reading, places in self.ways.items() if numbers & places)

    def frames(self, site: str | None) -> tuple[Frame, ...]:
        """The calls of the site in the user's own files, innermost first."""
        return tuple(f for f in self.recording.chain(site) if f.editable)

    def frame(self, site: str | None) -> Frame | None:
        return next(iter(self.frames(site)), None)

    def call(self, site: str | None) -> Expression | None:
        frame = self.frame(site)
        return self.book.expression(frame.span) if frame is not None else None

    def statement(self, site: str | None) -> Statement | None:
        frame = self.frame(site)
        return self.book.statement(frame.span) if frame is not None else None

    def patches(self, remedy: str, options: Iterable[list[Option]], level: Level = Level.SAFE) -> Iterable[Candidate]:
        """Candidates that take one option for each site: the first of each, then the next."""
        choices = list(options)
        if not choices or not all(choices):
            return
        for rank in range(min(MOST_RANKS, max(map(len, choices)))):
            chosen = [some[min(rank, len(some) - 1)] for some in choices]
            patch = candidate(
                self.book,
                remedy,
                "; ".join(dict.fromkeys(words for words, _, _ in chosen)),
                [edit for _, edits, _ in chosen for edit in edits],
                preference=max(preference for _, _, preference in chosen),
                level=level,
            )
            if patch is not None:
                yield patch


def short(code: str) -> str:
    line = " ".join(code.split())
    return line if len(line) <= 40 else line[:37] + "..."
