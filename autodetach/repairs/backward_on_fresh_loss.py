"""``backward()`` is called on the loss of an earlier step, kept in a list: call it on the one just made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import libcst as cst

from autodetach.diagnosis.findings import Findings
from autodetach.diagnosis.recording import Root
from autodetach.model import Candidate, Edit
from autodetach.repairs.interface import Example, candidate
from autodetach.repairs.one_backward import backward_call
from autodetach.source.edits.calls import replace_expression
from autodetach.source.edits.detach import detach_expression
from autodetach.source.expression import Expression
from autodetach.source.statement import Statement


class BackwardOnFreshLoss:
    """The loss that backward is called on was backpropagated before; the same line has just made a fresh one.

    Backward is called on the fresh one; what is kept for printing is kept without its graph.
    """

    name: ClassVar[str] = "backward-on-fresh-loss"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "an index into a list that is never emptied",
            "losses.append(loss)\nlosses[k].backward()\n",
            "losses.append(loss.detach())\nloss.backward()\n",
        ),
    )

    def propose(self, findings: Findings, root: Root) -> Iterable[Candidate]:
        call = backward_call(findings, findings.failure.chain)
        if call is None or root.birth is None:
            return
        node = call.node
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
            return
        for _, maker in findings.statements(root.birth[0]):
            name = maker.targets[0] if maker.kind == "Assign" and len(maker.targets) == 1 else ""
            if not name.isidentifier() or not _same_function(maker, call.statement):
                continue
            edit = replace_expression(Expression(call.tree, node.func.value), name)
            if edit is None:
                continue
            line = call.span.line
            kept = list(_kept(maker, call.statement, name))
            for extra, words in (((), ""), (kept, f"; keep {name} without its graph")):
                if words and not extra:
                    continue
                patch = candidate(
                    findings.book, self.name, f"call backward on {name} in line {line}{words}", (edit, *extra)
                )
                if patch is not None:
                    yield patch


def _same_function(a: Statement, b: Statement) -> bool:
    return a.tree is b.tree and (a.function.node if a.function else None) is (b.function.node if b.function else None)


def _kept(maker: Statement, backward: Statement, name: str) -> Iterable[Edit]:
    """Statements between the two that put the loss into something: ``losses.append(loss)``."""
    for statement in maker.suite:
        if not maker.start < statement.start < backward.start or statement.kind != "Expr":
            continue
        node = statement.node
        if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
            for argument in node.value.args:
                if isinstance(argument.value, cst.Name) and argument.value.value == name:
                    edit = detach_expression(Expression(statement.tree, argument.value), "tensor")
                    if edit is not None:
                        yield edit
