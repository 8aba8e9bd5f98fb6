"""A loss was computed before an optimizer changed the weights it depends on: compute it behind the step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from autodetach.diagnosis.findings import Findings
from autodetach.diagnosis.recording import Root
from autodetach.model import Candidate, Frame
from autodetach.repairs.interface import Example, candidate
from autodetach.source.edits.move import move_statements
from autodetach.source.statement import Statement


class MoveBelowStep:
    """Between a loss and its backward another network's optimizer has stepped.

    The statements that make the loss move behind that step: the loss is then taken at the weights that are, and every
    earlier update stays what it was.
    """

    name: ClassVar[str] = "move-below-step"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "actor and critic",
            "b = actor_loss()\na.backward()\nopt_a.step()\nb.backward()\n",
            "a.backward()\nopt_a.step()\nb = actor_loss()\nb.backward()\n",
        ),
        Example("leave alone: both losses share a forward pass", "h = f(x)\na, b = g(h), k(h)\n", None),
    )

    def propose(self, findings: Findings, root: Root, step_sites: Iterable[str]) -> Iterable[Candidate]:
        for frame, backward in self._failing(findings):
            del frame
            step = self._step(findings, backward, step_sites)
            makers = self._makers(findings, root, step, backward) if step is not None else []
            if step is None or not makers:
                continue
            between = [s for s in step.suite if makers[0].start < s.start <= step.start and s not in makers]
            if not all(m.independent_of(s) for m in makers for s in between):
                continue
            edits = move_statements(makers, after=step)
            if edits is not None:
                lines = ", ".join(str(m.span.line) for m in makers)
                patch = candidate(findings.book, self.name, f"move line {lines} behind line {step.span.line}", edits)
                if patch is not None:
                    yield patch
            return

    @staticmethod
    def _failing(findings: Findings) -> Iterable[tuple[Frame, Statement]]:
        for frame in findings.failure.chain:
            statement = findings.book.statement(frame.span) if frame.editable else None
            if statement is not None:
                yield frame, statement

    @staticmethod
    def _step(findings: Findings, backward: Statement, sites: Iterable[str]) -> Statement | None:
        """The step's statement in the same suite as the failing backward, before it: the last of them."""
        found = []
        for site in sites:
            for _, statement in findings.statements(site):
                if statement.suite_node is backward.suite_node and statement.start < backward.start:
                    found.append(statement)
        return max(found, key=lambda s: s.start, default=None)

    @staticmethod
    def _makers(findings: Findings, root: Root, step: Statement, backward: Statement) -> list[Statement]:
        """The statements before the step, in its suite, that made the failing loss."""
        del backward
        found: dict[object, Statement] = {}
        for site in dict.fromkeys([root.birth[0] if root.birth else None, *(d.site for d in root.dead)]):
            for _, statement in findings.statements(site):
                if statement.suite_node is step.suite_node and statement.start < step.start:
                    found[statement.node] = statement
        return sorted(found.values(), key=lambda s: s.start)
