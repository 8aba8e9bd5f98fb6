"""``total += loss`` with a total that was already backpropagated: ``total = total.detach() + loss``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import libcst as cst

from autodetach.diagnosis.findings import Findings, Reading
from autodetach.model import Edit
from autodetach.repairs.interface import Cut, Example
from autodetach.repairs.rebind_before import behind_backward
from autodetach.source.edits.lines import insert_after
from autodetach.source.expression import Expression
from autodetach.source.statement import Statement

_OPERATORS = {
    "AddAssign": "+",
    "SubtractAssign": "-",
    "MultiplyAssign": "*",
    "DivideAssign": "/",
    "MatrixMultiplyAssign": "@",
}


class DetachAccumulator:
    """A running total is written in place although its graph is gone.

    Its value goes on, its history does not: the total is detached as it is taken up again.
    """

    name: ClassVar[str] = "detach-accumulator"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "a total of losses",
            "total += loss\ntotal.backward()\n",
            "total = total.detach() + loss\ntotal.backward()\n",
        ),
    )

    def cuts(self, findings: Findings) -> Iterable[Cut]:
        by_statement: dict[object, tuple[Statement, set[Reading]]] = {}
        for reading, pairs in findings.readings.items():
            if not all(p.in_place for p in pairs):
                continue
            for _, statement in findings.statements(reading[3]):
                if statement.kind == "AugAssign":
                    by_statement.setdefault(statement.node, (statement, set()))[1].add(reading)
                break
        for statement, readings in by_statement.values():
            edit = _rewritten(statement)
            if edit is not None:
                summary = f"detach {statement.targets[0]} as line {statement.span.line} adds to it"
                yield Cut(self.name, summary, (edit,), frozenset(readings), 2)
            # a total that starts as a plain 0.0 has no detach() the first time round
            after = behind_backward(findings, statement)
            target = statement.targets[0]
            rebound = insert_after(after, f"{target} = {target}.detach()") if after is not None else None
            if after is not None and rebound is not None:
                summary = f"detach {target} after line {after.span.end_line}"
                yield Cut(self.name, summary, (rebound,), frozenset(readings), 3)


def _rewritten(statement: Statement) -> Edit | None:
    node = statement.node
    if not isinstance(node, cst.AugAssign):
        return None
    operator = _OPERATORS.get(type(node.operator).__name__)
    if operator is None:
        return None
    tree = statement.tree
    value = Expression(tree, node.value)
    code = value.outer_code if value.is_parenthesised or not value.parenthesise_for_attribute else f"({value.code})"
    target = tree.code(node.target)
    return Edit(tree.source.name, statement.start, statement.end, f"{target} = {target}.detach() {operator} {code}")
