"""What is known about a failure once the reference run is done: the basis of every proposal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from autodetach.diagnosis.recording import Holder, Leaf, Pair, Place, Recording
from autodetach.model import Cause, Chain, Failure, Frame, Span
from autodetach.source.book import SourceBook
from autodetach.source.expression import Expression
from autodetach.source.statement import Statement

Reading = tuple[Any, ...]
"""A kind of pair: (maker's site, place in its result, output, reading site, call, operand)."""

Value = tuple[str, int, int]
"""A kind of tensor: everything that one maker makes."""


@dataclass(frozen=True)
class Point:
    """An expression through which tensors pass that must be cut (or that were computed from such), bare (path ()) or
    inside a container.

    ``places`` maps each path to the place's number; ``others`` counts the tensors seen there whose graph must live: an
    edit here would cut them too. ``derived``: only what was computed from cut operands passes.
    """

    span: Span
    expression: Expression
    structure: Any
    places: Mapping[tuple[int | str, ...], int]
    others: Mapping[tuple[int | str, ...], int]
    values: frozenset[Value]
    """The kinds of tensors, themselves cut somewhere, that pass here."""

    @property
    def derived(self) -> bool:
        return not self.values


def points_at(
    book: SourceBook,
    places: Iterable[Place],
    others: Mapping[tuple[Span, tuple[int | str, ...]], int] = MappingProxyType({}),
) -> Iterator[Point]:
    """The expressions at these places, in their order; the longest structure seen at each stands for all."""
    grouped: dict[Span, list[Place]] = defaultdict(list)
    for place in places:
        grouped[place.point].append(place)
    for span, some in grouped.items():
        expression = book.expression(span)
        if expression is not None:
            yield Point(
                span,
                expression,
                max((p.structure for p in some), key=lambda s: len(repr(s))),
                {p.path: p.id for p in some},
                {path: n for (at, path), n in others.items() if at == span},
                frozenset().union(*(p.watched for p in some)),
            )


@dataclass(frozen=True)
class Findings:
    """``cuts`` are the pairs of the reference run that a backward would have reached."""

    failure: Failure
    observed: Recording
    reference: Recording
    cuts: tuple[Pair, ...]
    book: SourceBook
    cause: Cause = Cause.UNKNOWN
    starved: tuple[tuple[int, int], ...] = ()
    collected: frozenset[Reading] = frozenset()
    """Kinds of readings that take old tensors out of a container together with new ones."""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def readings(self) -> Mapping[Reading, tuple[Pair, ...]]:
        found: dict[Reading, list[Pair]] = defaultdict(list)
        for pair in self.cuts:
            found[pair.reading].append(pair)
        return {reading: tuple(pairs) for reading, pairs in found.items()}

    @cached_property
    def direct(self) -> frozenset[Reading]:
        """The readings that lie in the graph of a backward themselves, not only in another operand's past."""
        ids = self.reference.direct
        return frozenset(p.reading for p in self.cuts if p.id in ids)

    @cached_property
    def values(self) -> Mapping[Value, tuple[Pair, ...]]:
        found: dict[Value, list[Pair]] = defaultdict(list)
        for pair in self.cuts:
            found[pair.value].append(pair)
        return {value: tuple(pairs) for value, pairs in found.items()}

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Every expression of the project where an edit might cut, in the order of first passing."""
        useful = frozenset().union(*(self.reference.dominators.get(p.id, ()) for p in self.cuts))
        places = (p for p in self.reference.places.values() if p.id in useful or p.watched)
        return tuple(points_at(self.book, places, self.reference.others))

    def cut_at(self, point: Point, paths: Iterable[tuple[int | str, ...]] | None = None) -> frozenset[Reading]:
        """The readings that an edit at the point (at ``paths`` of its value) would cut: all their ways pass it."""
        chosen = set(point.places if paths is None else paths)
        numbers = {number for path, number in point.places.items() if path in chosen}
        dominators = self.reference.dominators
        return frozenset(
            reading
            for reading, pairs in self.readings.items()
            if all(numbers & dominators.get(p.id, frozenset()) for p in pairs if p.id in dominators)
            and any(p.id in dominators for p in pairs)
        )

    def passed_by(self, pair: Pair) -> tuple[Point, ...]:
        """The points that a pair's tensor, or what came of it, passed."""
        places = self.reference.dominators.get(pair.id, frozenset())
        return tuple(p for p in self.points if not places.isdisjoint(p.places.values()))

    def held_at(self, holders: Iterable[Holder]) -> tuple[frozenset[Reading], frozenset[tuple[int | str, ...]]]:
        """The readings whose tensors lie in one of the holders when a step ends between their making and their
        reading, and the paths at which they lie. What cuts there, behind the backward or before the next step, cuts
        them.
        """
        wanted = {holder.id for holder in holders}
        lain: dict[int, dict[Any, set[Any]]] = {}
        for n, rows in self.reference.held.items():
            lain[n] = defaultdict(set)
            for number, path, birth in rows:
                if number in wanted:
                    lain[n][birth].add(path)
        readings: set[Reading] = set()
        paths: set[tuple[int | str, ...]] = set()
        for reading, pairs in self.readings.items():
            found = []
            for pair in pairs:
                borders = [n for n in lain if pair.made[1] < n <= pair.read[1]]
                if borders or pair.made[1] == pair.read[1]:
                    found.append({p for n in borders for p in lain[n].get(pair.birth, ())})
            if any(found):
                paths |= frozenset().union(*found)
            if found and all(found):
                readings.add(reading)
        return frozenset(readings), frozenset(paths)

    @cached_property
    def live_values(self) -> frozenset[Value]:
        """Kinds of tensors that the reference also reads alive somewhere."""
        return frozenset((f.birth[0], f.birth[2], f.birth[3]) for f in self.reference.flows)

    def chain(self, site: str | None) -> Chain:
        return self.reference.chain(site) or self.observed.chain(site)

    def frames(self, site: str | None) -> tuple[Frame, ...]:
        """The frames of a site in files of the project, innermost first."""
        return tuple(f for f in self.chain(site) if f.editable)

    def statements(self, site: str | None) -> Iterable[tuple[Frame, Statement]]:
        for frame in self.frames(site):
            statement = self.book.statement(frame.span)
            if statement is not None:
                yield frame, statement

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The leaves below everything that is cut."""
        found = {leaf.number: leaf for pair in self.cuts for leaf in pair.leaves}
        return tuple(found.values())
