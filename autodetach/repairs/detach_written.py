"""``.detach()`` on what is written into a tensor by index: the buffer outlives the step and gathers every graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import libcst as cst

from autodetach.diagnosis.findings import Findings
from autodetach.diagnosis.recording import Pair
from autodetach.repairs.interface import Cut, Example
from autodetach.source.edits.detach import detach_expression
from autodetach.source.expression import Expression
from autodetach.source.statement import Statement


class DetachWritten:
    """A preallocated tensor is filled by index, step after step, with values that carry their graphs.

    What is read from it later leads into all of them, and detaching there would leave the buffer's own graph growing
    for ever. The values are detached as they are written.
    """

    name: ClassVar[str] = "detach-what-is-written"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "a rollout of values",
            "for t in range(3):\n    values[t] = net(x[t])\n",
            "for t in range(3):\n    values[t] = net(x[t]).detach()\n",
        ),
    )

    def cuts(self, findings: Findings) -> Iterable[Cut]:
        written: dict[object, tuple[Statement, set[object]]] = {}
        for reading, pairs in findings.readings.items():
            for statement in _writes(findings, pairs[0]):
                written.setdefault(statement.node, (statement, set()))[1].add(reading)
        for statement, readings in written.values():
            node = statement.node
            assert isinstance(node, cst.Assign)
            edit = detach_expression(Expression(statement.tree, node.value), "tensor")
            if edit is not None:
                words = f"detach what is written in line {statement.span.line}"
                yield Cut(self.name, words, (edit,), frozenset(readings))  # type: ignore[arg-type]


def _writes(findings: Findings, pair: Pair) -> Iterable[Statement]:
    """The assignments to an index that the tensor's graph consists of, newest first."""
    for site in (pair.birth[0] if pair.birth else None, *pair.past):
        for _, statement in findings.statements(site):
            targets = statement.node.targets if isinstance(statement.node, cst.Assign) else ()
            if len(targets) == 1 and isinstance(targets[0].target, cst.Subscript):
                yield statement
            break
