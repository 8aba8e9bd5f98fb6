"""``h.detach()`` alone on its line does nothing: bind its result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import libcst as cst

from autodetach.diagnosis.findings import Findings
from autodetach.repairs.interface import Cut, Example
from autodetach.source.edits.detach import rebind


class RebindDiscardedDetach:
    """The author detached the state and threw the result away; ``detach()`` changes nothing in place."""

    name: ClassVar[str] = "discarded-detach"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("the result is thrown away", "h.detach()\n", "h = h.detach()\n"),
        Example("leave alone: detach_() works in place", "h.detach_()\n", None),
    )

    def cuts(self, findings: Findings) -> Iterable[Cut]:
        for point in findings.points:
            statement = point.expression.statement
            node = statement.node
            if not isinstance(node, cst.Expr) or not isinstance(node.value, cst.Call):
                continue
            function = node.value.func
            if not isinstance(function, cst.Attribute) or function.attr.value != "detach":
                continue
            if function.value is not point.expression.node:
                continue
            readings = findings.cut_at(point)
            edit = rebind(statement)
            if edit is not None and readings:
                yield Cut(self.name, f"keep what line {point.span.line} detaches", (edit,), readings, 0)
