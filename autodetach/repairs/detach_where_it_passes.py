"""``.detach()`` on an expression that the stale tensor passes: where it is stored, handed over, or used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from autodetach.diagnosis.findings import Findings, Point
from autodetach.repairs.interface import Cut, Example
from autodetach.repairs.places import OVERCUTS, binds, overcuts, structure_at, within
from autodetach.source.edits.detach import detach_expression
from autodetach.source.expression import Role


class DetachWhereItPasses:
    """A tensor kept from an earlier step leads back into a graph that is gone.

    The value is right, its history is not wanted: detach it where it is stored, so that nothing is kept alive; else
    where it is handed over (returned, passed on), else where it is used.
    """

    name: ClassVar[str] = "detach"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "at the store",
            "for x, y in data:\n    out, h = net(x, h0)\n    h0 = h\n",
            "for x, y in data:\n    out, h = net(x, h0)\n    h0 = h.detach()\n",
        ),
        Example(
            "leave alone: the tensor is read again while its graph lives",
            "loss = criterion(net(x), y)\nloss.backward()\n",
            None,
        ),
    )

    def cuts(self, findings: Findings) -> Iterable[Cut]:
        for point in findings.points:
            readings = findings.cut_at(point)
            if not readings or point.expression.is_target:
                continue
            edit = detach_expression(point.expression, structure_at(point))
            if edit is None:
                continue
            rank = self._rank(findings, point)
            yield Cut(
                self.name,
                f"detach {_short(point.expression.code)} in line {point.span.line}",
                (edit,),
                readings,
                rank + (OVERCUTS if overcuts(findings, point) else 0),
            )

    @staticmethod
    def _rank(findings: Findings, point: Point) -> int:
        """The store before the hand-over before the use."""
        used = any(within(findings.chain(reading[3]), point) for reading in findings.readings)
        if point.expression.role is Role.STORE or (point.expression.role is Role.ITEM and binds(point.expression)):
            return 0 if not used else 1
        return 2 if used else 1


def _short(code: str) -> str:
    line = " ".join(code.split())
    return line if len(line) <= 40 else line[:37] + "..."
