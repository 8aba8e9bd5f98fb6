"""What is known about a failure once the reference run is done: the basis of every proposal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from autodetach.diagnosis.recording import Birth, Leaf, Pair, Passage, Recording
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
    """An expression through which tensors that must be cut pass, bare (path ()) or inside a container.

    ``births`` are the tensors seen there; ``others`` counts the tensors with a graph seen there that must not be
    cut: an edit here would cut them too.
    """

    span: Span
    expression: Expression
    structure: Any
    paths: Mapping[tuple[int | str, ...], frozenset[Birth]]
    others: Mapping[tuple[int | str, ...], int]
    first_step: Mapping[Birth, tuple[int, int]]

    @property
    def births(self) -> frozenset[Birth]:
        return frozenset().union(*self.paths.values())


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
        """Every expression of the project that a tensor to be cut passed, in the order of first passing."""
        wanted = {p.birth for p in self.cuts}
        grouped: dict[Span, list[Passage]] = defaultdict(list)
        for passage in self.reference.passages:
            if passage.birth in wanted:
                grouped[passage.point].append(passage)
        points = []
        for span, passages in grouped.items():
            expression = self.book.expression(span)
            if expression is None:
                continue
            paths: dict[tuple[int | str, ...], set[Birth]] = defaultdict(set)
            first: dict[Birth, tuple[int, int]] = {}
            for passage in passages:
                paths[passage.path].add(passage.birth)
                first[passage.birth] = min(first.get(passage.birth, passage.step), passage.step)
            others = {path: n for (at, path), n in self.reference.others.items() if at == span}
            structure = max((p.structure for p in passages), key=lambda s: len(repr(s)))
            points.append(
                Point(span, expression, structure, {p: frozenset(b) for p, b in paths.items()}, others, first)
            )
        return tuple(points)

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
