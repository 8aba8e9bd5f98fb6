"""Values are kept for looking at together with their graphs: detach what is put aside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from autodetach.diagnosis.findings import Point, Reading, points_at
from autodetach.diagnosis.recording import Leak, Recording
from autodetach.model import Candidate, Span
from autodetach.repairs.cover import covers
from autodetach.repairs.interface import Cut, Example
from autodetach.repairs.mending import short
from autodetach.repairs.places import structure_at
from autodetach.source.book import SourceBook
from autodetach.source.edits.detach import detach_expression
from autodetach.source.expression import Role


@dataclass(frozen=True)
class Kept:
    """``recording`` is that of a run in which the kinds of tensors that pile up, and their parents, were followed."""

    recording: Recording
    book: SourceBook

    @property
    def leaks(self) -> tuple[Leak, ...]:
        return self.recording.leaks

    @cached_property
    def ways(self) -> Mapping[Reading, tuple[frozenset[int], ...]]:
        """Each kind that grows: the places that all its tensors passed, and those of each kind they are made of."""
        return {leak.kind: (leak.places, *(places for _, places in leak.parents)) for leak in self.leaks}

    @cached_property
    def points(self) -> tuple[Point, ...]:
        useful = frozenset(number for ways in self.ways.values() for places in ways for number in places)
        places = (place for number, place in sorted(self.recording.places.items()) if number in useful)
        return tuple(p for p in points_at(self.book, places) if not p.expression.is_target)

    def cut_at(self, point: Point) -> frozenset[Reading]:
        numbers = frozenset(point.places.values())
        return frozenset(kind for kind, ways in self.ways.items() if any(numbers & places for places in ways))

    def store_of(self, leak: Leak) -> Span | None:
        """Where such a tensor is handed to what keeps it: the last argument or element that it was."""
        found = [p for p in self.points if leak.kind in self.cut_at(p) and _rank(p) == 0]
        return found[-1].span if found else None


class DetachKept:
    """Losses or outputs are added up, or collected in a list, with everything they were computed from.

    Nothing fails, but the memory grows until it does. The values are kept detached; the training stays the same.
    """

    name: ClassVar[str] = "detach-kept"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("a running total for printing", "total += loss\n", "total += loss.detach()\n"),
        Example("a history of losses", "history.append(loss)\n", "history.append(loss.detach())\n"),
        Example("leave alone: the sum is backpropagated", "total = total + loss\ntotal.backward()\n", None),
    )

    def propose(self, kept: Kept) -> Iterable[Candidate]:
        cuts = []
        for point in kept.points:
            readings = kept.cut_at(point)
            edit = detach_expression(point.expression, structure_at(point)) if readings else None
            if edit is not None:
                words = f"detach {short(point.expression.code)} in line {point.span.line}"
                cuts.append(Cut(self.name, words, (edit,), readings, _rank(point)))
        yield from covers(kept, cuts, frozenset(kept.ways))


def _rank(point: Point) -> int:
    """What is added or handed over to be kept comes first; a tensor's own making feeds the backward, too."""
    role = point.expression.role
    if role in (Role.ARGUMENT, Role.ITEM) or type(point.expression.statement.node).__name__ == "AugAssign":
        return 0
    return 1 if role is Role.OPERAND else 2
