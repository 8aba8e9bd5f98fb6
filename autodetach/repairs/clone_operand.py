"""A value that an operation saved for its gradient is overwritten later in the same step: hand it a copy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import libcst as cst

from autodetach.diagnosis.findings import Findings
from autodetach.diagnosis.recording import Dead
from autodetach.model import Candidate
from autodetach.repairs.interface import Example, candidate
from autodetach.source.edits.calls import replace_expression
from autodetach.source.expression import Expression
from autodetach.source.imports import imported

RESULTS = frozenset({"result", "output", "result0", "result1"})
FIRST = frozenset({"self", "input"})


class CloneOperand:
    """An in-place change overwrites what an earlier operation needs for its gradient.

    The operation gets a copy of its own (``clone`` keeps the graph), so what is written later does no harm.
    """

    name: ClassVar[str] = "clone-operand"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "rows of a tensor are computed from earlier rows",
            "p[1] = torch.matmul(p[0], m)\n",
            "p[1] = torch.matmul(p[0].clone(), m)\n",
        ),
        Example("leave alone: the optimizer changed the value", "opt.step()\nloss.backward()\n", None),
    )

    def propose(self, findings: Findings, dead: tuple[Dead, ...]) -> Iterable[Candidate]:
        """One candidate for each expression whose copy may help, in each place that lost a saved value."""
        choices: dict[str, list[Expression]] = {}
        for each in dead:
            frames = findings.frames(each.site)
            call = findings.book.expression(frames[0].span) if frames else None
            if call is not None and each.site is not None:
                module = findings.book.module(frames[0].span.file)
                no_values = imported(module) if module is not None else frozenset()
                for expression in _expressions(call, frozenset(each.names)):
                    named = isinstance(expression.node, cst.Name | cst.Attribute)
                    if named and expression.code.partition(".")[0] in no_values:
                        continue  # torch in torch.matmul(a, b) has no value to be copied
                    if expression not in choices.setdefault(each.site, []):
                        choices[each.site].append(expression)
        for rank in range(4):
            chosen = [options[min(rank, len(options) - 1)] for options in choices.values() if options]
            if not chosen or (rank and all(len(o) <= rank for o in choices.values())):
                return
            patch = candidate(
                findings.book,
                self.name,
                "; ".join(dict.fromkeys(f"copy {_short(e.code)} in line {e.span.line}" for e in chosen)),
                [edit for e in chosen for edit in [_cloned(e)] if edit is not None],
                preference=rank,
            )
            if patch is not None:
                yield patch


def _expressions(call: Expression, names: frozenset[str]) -> Iterable[Expression]:
    """Where the saved value comes from: the operation's result, or one of its operands."""
    if names & RESULTS:
        yield call
    node = call.node
    operands: list[cst.BaseExpression] = []
    if isinstance(node, cst.BinaryOperation):
        operands = [node.left, node.right]
    elif isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute):
            operands.append(node.func.value)
        operands += [a.value for a in node.args if not a.star]
    elif isinstance(node, cst.Subscript):
        operands = [node.value]
    found = [
        Expression(call.tree, o) for o in operands if isinstance(o, cst.Subscript | cst.Name | cst.Attribute | cst.Call)
    ]
    if not names & FIRST:
        found.reverse()
    yield from found
    if not names & RESULTS:
        yield call


def _cloned(expression: Expression):  # type: ignore[no-untyped-def]
    code = expression.code
    return replace_expression(
        expression, f"({code}).clone()" if expression.parenthesise_for_attribute else f"{code}.clone()"
    )


def _short(code: str) -> str:
    line = " ".join(code.split())
    return line if len(line) <= 40 else line[:37] + "..."
