"""A computation made once before the loop, although parameters below it learn: make it anew in every step."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from autodetach.diagnosis.findings import Findings
from autodetach.diagnosis.recording import Pair
from autodetach.model import Candidate, Edit, Frame
from autodetach.repairs.interface import Example, candidate
from autodetach.source.edits.move import move_statements
from autodetach.source.statement import Statement

NAMES = ("noise", "drawn", "random_input")
"""For random numbers that were an argument before."""


class MoveIntoLoop:
    """A tensor computed from parameters is built once, before the loop, and used in every step.

    Its graph is freed by the first backward, and its value would stay that of the first step for ever. The statements
    that make it move into the loop (or from ``__init__`` into ``forward``).
    """

    name: ClassVar[str] = "move-into-loop"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "weights normalised once",
            "w = softmax(logits)\nfor x, y in data:\n    loss = f(w, x, y)\n    loss.backward()\n",
            "for x, y in data:\n    w = softmax(logits)\n    loss = f(w, x, y)\n    loss.backward()\n",
        ),
        Example(
            "random numbers are drawn once all the same",
            "codes = mapper(torch.randn(4, 2))\nfor x in data:\n    train(codes, x)\n",
            "noise = torch.randn(4, 2)\nfor x in data:\n    codes = mapper(noise)\n    train(codes, x)\n",
        ),
    )

    def propose(self, findings: Findings) -> Iterable[Candidate]:
        found = self._in_function(findings)
        if found is not None:
            yield found
        yield from self._from_init(findings)

    def _in_function(self, findings: Findings) -> Candidate | None:
        moved: dict[object, Statement] = {}
        loop: Statement | None = None
        for pairs in findings.readings.values():
            for pair in pairs[:1]:
                target = self._loop(findings, pair)
                if target is None:
                    return None
                if loop is None or _contains(loop, target):
                    loop = target
                for statement in self._makers(findings, pair, target):
                    moved[statement.node] = statement
        if loop is None or not moved:
            return None
        statements = sorted(moved.values(), key=lambda s: s.start)
        if any(s.suite_node is not statements[0].suite_node for s in statements):
            return None
        edits = move_statements(statements, to_start_of=loop)
        if edits is None:
            return None
        if any(_draws(findings, s) for s in statements):
            edits = _without_the_draw(findings, statements, edits)
            if edits is None:
                return None
        lines = ", ".join(str(s.span.line) for s in statements)
        summary = f"make line {lines} anew in every step of the loop in line {loop.span.line}"
        return candidate(findings.book, self.name, summary, edits)

    def _loop(self, findings: Findings, pair: Pair) -> Statement | None:
        """The innermost loop around both the reading and the failing backward, but not around the making."""
        made = {s.node for _, s in findings.statements(pair.birth[0] if pair.birth else None)}
        backward = {loop.node for _, s in self._failing(findings) for loop in s.loops}
        for _, statement in findings.statements(pair.site):
            for loop in statement.loops:
                around = any(loop.node is block.node for m in made for block in _blocks(findings, pair, m))
                if not around and (loop.node in backward or not backward):
                    return loop
        return None

    @staticmethod
    def _failing(findings: Findings) -> Iterable[tuple[Frame, Statement]]:
        for frame in findings.failure.chain:
            statement = findings.book.statement(frame.span) if frame.editable else None
            if statement is not None:
                yield frame, statement

    def _makers(self, findings: Findings, pair: Pair, loop: Statement) -> Iterable[Statement]:
        """The statements before the loop, in a suite around it, that made the tensor or handed it on."""
        suites = {id(loop.suite_node): loop, **{id(b.suite_node): b for b in loop.blocks}}
        sites = [s for s in (pair.birth[0] if pair.birth else None, *pair.past) if s]
        passed = [p.span for p in findings.passed_by(pair)]
        statements = [s for site in sites for _, s in findings.statements(site)]
        statements += [s for s in map(findings.book.statement, passed) if s is not None]
        for statement in statements:
            anchor = suites.get(id(statement.suite_node))
            if anchor is not None and statement.start < anchor.start and statement.kind in ("Assign", "AnnAssign"):
                yield statement

    def _from_init(self, findings: Findings) -> Iterable[Candidate]:
        """``self.w = f(self.p)`` in ``__init__``, read in other methods of the class: the innermost is tried first."""
        moved: dict[object, Statement] = {}
        common: list[Statement] | None = None
        for pairs in findings.readings.values():
            pair = pairs[0]
            maker = next(
                (
                    s
                    for _, s in findings.statements(pair.birth[0] if pair.birth else None)
                    if s.function and _name(s.function) == "__init__"
                ),
                None,
            )
            if maker is None or not any(t.startswith("self.") for t in maker.targets):
                return
            methods = [s.function for _, s in findings.statements(pair.site) if s.function is not None]
            home = maker.function.block if maker.function else None
            same = [m for m in methods if home is not None and m.block is not None and m.block.node is home.node]
            common = [m for m in (same if common is None else common) if any(m.node is n.node for n in same)]
            moved[maker.node] = maker
        statements = sorted(moved.values(), key=lambda s: s.start)
        if any(_draws(findings, s) for s in statements):
            return
        lines = ", ".join(str(s.span.line) for s in statements)
        for target in common or ():
            edits = move_statements(statements, to_start_of=target)
            if edits is not None:
                summary = f"make line {lines} anew in every call of {_name(target)}"
                found = candidate(findings.book, self.name, summary, edits, preference=1)
                if found is not None:
                    yield found


def _without_the_draw(
    findings: Findings, statements: list[Statement], edits: tuple[Edit, ...]
) -> tuple[Edit, ...] | None:
    """The draw of random numbers in a statement stays where it is, under a name of its own; the rest moves."""
    spans = {
        frame.span
        for site in findings.reference.random
        for frame, found in findings.statements(site)
        if found.node is statements[0].node
    }
    if len(statements) > 1 or len(spans) != 1 or len(edits) != 2:
        return None
    (statement,) = statements
    expression = findings.book.expression(spans.pop())
    text = statement.tree.source.text
    name = next((n for n in NAMES if not re.search(rf"\b{n}\b", text)), None)
    if expression is None or name is None or expression.statement.node is not statement.node:
        return None
    draw, line = expression.code, statement.code
    if line.count(draw) != 1 or "\n" in line or statement.shares_line:
        return None
    rest = line.replace(draw, name)
    put = next((e for e in edits if line in e.text), None)
    if put is None:
        return None
    kept = Edit(put.file, statement.start, statement.end, f"{name} = {draw}")
    return tuple(sorted((kept, replace(put, text=put.text.replace(line, rest))), key=lambda e: e.start))


def _draws(findings: Findings, statement: Statement) -> bool:
    """Whether the statement draws random numbers: done again it would give something else."""
    return any(
        found.node is statement.node for site in findings.reference.random for _, found in findings.statements(site)
    )


def _name(function: Statement) -> str:
    return str(getattr(getattr(function.node, "name", None), "value", ""))


def _blocks(findings: Findings, pair: Pair, node: object) -> list[Statement]:
    for _, statement in findings.statements(pair.birth[0] if pair.birth else None):
        if statement.node is node:
            return statement.blocks
    return []


def _contains(outer: Statement, inner: Statement) -> bool:
    return any(block.node is outer.node for block in inner.blocks)
