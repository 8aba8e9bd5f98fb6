"""A derivative is asked for with respect to an input that is not in the graph: mark it before the forward pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, product
from typing import ClassVar

import libcst as cst

from autodetach.diagnosis.recording import Input, Marked, Recording
from autodetach.model import Candidate, Edit, Failure, Frame
from autodetach.repairs.interface import Example, candidate
from autodetach.repairs.keep_graph import without_detach
from autodetach.source.book import SourceBook
from autodetach.source.edits.calls import replace_expression
from autodetach.source.edits.detach import append_call
from autodetach.source.edits.lines import insert_before
from autodetach.source.edits.move import move_statements
from autodetach.source.expression import Expression, Role
from autodetach.source.statement import Statement

MOST = 24
MARK = ".requires_grad_()"

Option = tuple[str, tuple[Edit, ...], int]


@dataclass(frozen=True)
class Derivative:
    """``recording`` is that of the run in which every derivative reaches its input; ``needs`` are the inputs that did
    not, each with the failing call it was handed to."""

    failure: Failure
    recording: Recording
    book: SourceBook
    needs: tuple[tuple[str, Input], ...]

    def frames(self, site: str | None) -> tuple[Frame, ...]:
        return tuple(f for f in self.recording.chain(site) if f.editable)

    def expression(self, site: str | None) -> Expression | None:
        frames = self.frames(site)
        return self.book.expression(frames[0].span) if frames else None

    def marked(self, reading: tuple[str, int] | None) -> Marked | None:
        return next((m for m in self.recording.marked if (m.site, m.place) == reading), None)


class MarkInput:
    """``autograd.grad`` with respect to a tensor that the graph knows nothing of.

    It has to require gradients before anything is computed from it: where it is made, or before the forward pass that
    reads it. A copy that was marked too late takes the place of the original; a ``detach()`` on the way goes.
    """

    name: ClassVar[str] = "mark-input"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "where the points are made",
            "x = torch.rand(16, 2)\nu = net(x)\nslope, = torch.autograd.grad(u.sum(), x, create_graph=True)\n",
            "x = torch.rand(16, 2).requires_grad_()\nu = net(x)\n"
            "slope, = torch.autograd.grad(u.sum(), x, create_graph=True)\n",
        ),
        Example(
            "marked too late",
            "u = net(x)\nx.requires_grad_()\nslope, = torch.autograd.grad(u.sum(), x, create_graph=True)\n",
            "x.requires_grad_()\nu = net(x)\nslope, = torch.autograd.grad(u.sum(), x, create_graph=True)\n",
        ),
        Example("leave alone: the input is in the graph", "g, = torch.autograd.grad(loss, net.weight)\n", None),
    )

    def propose(self, derivative: Derivative) -> Iterable[Candidate]:
        options: dict[object, list[Option]] = {}
        for _, need in derivative.needs:
            for cut in need.cuts:
                expression = derivative.expression(cut)
                options[cut] = [(w, e, 0) for w, e in without_detach(expression)] if expression is not None else []
            if need.read is None and need.twin is not None:
                options[need.maker] = list(_instead(derivative, need))
            elif need.read is not None and not (need.marked and need.cuts):
                options[need.read] = list(_marks(derivative, need))
        if not options or not all(options.values()):
            return
        for chosen in islice(product(*options.values()), MOST):
            patch = candidate(
                derivative.book,
                self.name,
                "; ".join(dict.fromkeys(words for words, _, _ in chosen)),
                [edit for _, edits, _ in chosen for edit in edits],
                preference=max(preference for _, _, preference in chosen),
            )
            if patch is not None:
                yield patch


def _marks(derivative: Derivative, need: Input) -> Iterable[Option]:
    marked = derivative.marked(need.read)
    rows = list(marked.frames) if marked is not None else []
    functions = [f.function for f in derivative.failure.chain if f.editable]
    rows.sort(key=lambda row: functions.index(row[1]) if row[1] in functions else len(functions))
    readers = [(s, names) for span, _, names in rows for s in [derivative.book.statement(span)] if s is not None]
    late = _statement(derivative, need.marked_at)
    if late is not None:
        for reader, _ in readers:
            if reader.suite_node is late.suite_node and reader.start < late.start:
                edits = move_statements([late], before=reader)
                if edits is not None:
                    yield f"move line {late.span.line} before line {reader.span.line}", edits, 0
    maker = derivative.expression(need.maker)
    if maker is not None and maker.role not in (Role.ITERATED, Role.OTHER) and not maker.is_target:
        edit = append_call(maker, MARK)
        if edit is not None:
            yield f"let {_short(maker.code)} require gradients in line {maker.span.line}", (edit,), 1
    for reader, names in readers:
        for name in names:
            edit = insert_before(reader, f"{name}{MARK}")
            if edit is not None:
                yield f"let {name} require gradients before line {reader.span.line}", (edit,), 2


def _instead(derivative: Derivative, need: Input) -> Iterable[Option]:
    """The copy that the derivative is taken of, read by the forward pass in the place of its original."""
    twin = need.twin
    marked = derivative.marked(twin.read if twin is not None else None)
    copied = _statement(derivative, need.maker)
    known = {function: mine[0] for _, function, mine in need.frames if mine}
    for span, function, names in marked.frames if marked is not None else ():
        reader = derivative.book.statement(span)
        same_suite = copied is not None and reader is not None and reader.suite_node is copied.suite_node
        if same_suite and copied is not None and reader is not None and reader.start < copied.start:
            edits = move_statements([copied], before=reader)
            if edits is not None:
                yield f"move line {copied.span.line} before line {reader.span.line}", edits, 0
        call = derivative.book.expression(span)
        name = known.get(function)
        if call is not None and name is not None and isinstance(call.node, cst.Call):
            for argument in (Expression(call.tree, a.value) for a in call.node.args if not a.star):
                edit = replace_expression(argument, name) if argument.code in names and argument.code != name else None
                if edit is not None:
                    yield f"use {name} instead of {argument.code} in line {span.line}", (edit,), 0


def _statement(derivative: Derivative, site: str | None) -> Statement | None:
    frames = derivative.frames(site)
    statement = derivative.book.statement(frames[0].span) if frames else None
    return statement if statement is not None and statement.is_simple else None


def _short(code: str) -> str:
    line = " ".join(code.split())
    return line if len(line) <= 40 else line[:37] + "..."
