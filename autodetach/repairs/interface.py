"""What a repair is: a class that knows one remedy, proposes it where it fits, and carries its own documentation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from autodetach.diagnosis.findings import Findings, Reading
from autodetach.errors import SourceError
from autodetach.model import Candidate, Edit, Level
from autodetach.source.book import SourceBook
from autodetach.source.edits.size import size


@dataclass(frozen=True)
class Example:
    """A program and what the remedy makes of it; ``after`` is None where the remedy must leave it alone."""

    title: str
    before: str
    after: str | None


@dataclass(frozen=True)
class Cut:
    """One edit that cuts some readings; a patch is a set of cuts that covers all that must be cut."""

    remedy: str
    summary: str
    edits: tuple[Edit, ...]
    covers: frozenset[Reading]
    preference: int = 0


class HasBook(Protocol):
    """Whatever knows the files."""

    @property
    def book(self) -> SourceBook: ...


class CutRepair(Protocol):
    """Proposes cuts."""

    name: ClassVar[str]

    def cuts(self, findings: Findings) -> Iterable[Cut]: ...


class Repair(Protocol):
    """Proposes whole candidates."""

    name: ClassVar[str]

    def propose(self, findings: Findings) -> Iterable[Candidate]: ...


def smallest_first(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The order in which they are tried: fewest changed lines, then the preferred place, then fewest tokens."""
    return tuple(sorted(candidates, key=lambda c: (c.changed_lines, c.preference, c.changed_tokens)))


def candidate(
    book: SourceBook,
    remedy: str,
    summary: str,
    edits: Iterable[Edit],
    *,
    preference: int = 0,
    same_values: bool = True,
    level: Level = Level.SAFE,
) -> Candidate | None:
    """A candidate with its size, or None where the edits overlap or change nothing."""
    unique = tuple(dict.fromkeys(edits))
    lines = tokens = 0
    try:
        for file in sorted({e.file for e in unique}):
            module = book.module(file)
            if module is None:
                return None
            changed = size(module, [e for e in unique if e.file == file])
            lines, tokens = lines + changed[0], tokens + changed[1]
    except SourceError:
        return None
    if not lines:
        return None
    return Candidate(remedy, summary, unique, lines, tokens, preference, same_values, level)
