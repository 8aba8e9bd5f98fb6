"""An optimizer's closure calls backward on a loss from outside: the closure has to make the loss anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from autodetach.diagnosis.findings import Findings
from autodetach.diagnosis.recording import Root
from autodetach.model import Candidate
from autodetach.repairs.interface import Example, candidate
from autodetach.repairs.one_backward import backward_call
from autodetach.source.edits.lines import insert_at_start
from autodetach.source.statement import Statement


class RecomputeInClosure:
    """The optimizer calls the closure to evaluate the loss at other weights; a loss made outside cannot tell it.

    What makes the loss is repeated at the closure's start.
    """

    name: ClassVar[str] = "recompute-in-closure"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "a closure that only calls backward",
            "loss = f(x)\nloss.backward()\ndef closure():\n    loss.backward()\n    return loss\n",
            "loss = f(x)\nloss.backward()\ndef closure():\n    loss = f(x)\n    loss.backward()\n    return loss\n",
        ),
    )

    def propose(self, findings: Findings, root: Root) -> Iterable[Candidate]:
        call = backward_call(findings, findings.failure.chain)
        if call is None or root.birth is None:
            return
        closure = call.statement.function
        if closure is None or closure.block is None:
            return
        statements = self._makers(findings, root, closure)
        if not statements or any("\n" in s.code for s in statements):
            return
        edit = insert_at_start(closure, "\n".join(s.code for s in statements))
        if edit is None:
            return
        lines = ", ".join(str(s.span.line) for s in statements)
        patch = candidate(
            findings.book,
            self.name,
            f"repeat line {lines} in the closure of line {closure.span.line}",
            (edit,),
        )
        if patch is not None:
            yield patch

    @staticmethod
    def _makers(findings: Findings, root: Root, closure: Statement) -> list[Statement]:
        """The statements around the closure that made the loss, as far as its graph shows them."""
        around = closure.function
        sites = dict.fromkeys([root.birth[0] if root.birth else "", *(d.site or "" for d in root.dead)])
        found: dict[object, Statement] = {}
        for site in sites:
            for _, statement in findings.statements(site):
                same = (statement.function.node if statement.function else None) is (around.node if around else None)
                if (
                    same
                    and statement.tree is closure.tree
                    and statement.kind == "Assign"
                    and statement.start < closure.start
                ):
                    found[statement.node] = statement
        return sorted(found.values(), key=lambda s: s.start)
