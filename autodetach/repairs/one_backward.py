"""Two backward passes of one step go through the same graph: take one backward of the sum, or keep the graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import libcst as cst

from autodetach.diagnosis.findings import Findings
from autodetach.model import Candidate, Chain
from autodetach.repairs.interface import Example, candidate
from autodetach.source.edits.calls import replace_expression, set_keyword
from autodetach.source.edits.lines import delete_statement
from autodetach.source.expression import Expression


class OneBackward:
    """The gradients of both losses are wanted, and no parameter changes between the two passes.

    One backward of the sum gives the same gradients in one pass over the shared part.
    """

    name: ClassVar[str] = "one-backward"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("two losses of one network", "a.backward()\nb.backward()\n", "(a + b).backward()\n"),
        Example("leave alone: an optimizer steps between them", "a.backward()\nopt.step()\nb.backward()\n", None),
    )

    def propose(self, findings: Findings, earlier: Chain) -> Iterable[Candidate]:
        first, second = backward_call(findings, earlier), backward_call(findings, findings.failure.chain)
        if first is None or second is None or first.tree is not second.tree:
            return
        one, two = first.statement, second.statement
        same = (one.function.node if one.function else None) is (two.function.node if two.function else None)
        roots = [_root(first), _root(second)]
        if (
            not same
            or one.node is two.node
            or None in roots
            or _arguments(first)
            or one.suite_node is not two.suite_node
        ):
            return
        a, b = roots
        assert a is not None and b is not None
        if not b.is_name_like:
            return
        gone = delete_statement(one)
        left = a.code if not a.parenthesise_for_attribute else f"({a.code})"
        summed = replace_expression(b, f"({left} + {b.code})")
        if gone is not None and summed is not None:
            patch = candidate(
                findings.book,
                self.name,
                f"one backward of the sum in line {two.span.line}",
                (gone, summed),
                same_values=False,
            )
            if patch is not None:
                yield patch


class KeepGraph:
    """The one situation that ``retain_graph=True`` is made for: two backward passes of one step, no update between."""

    name: ClassVar[str] = "keep-graph"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "two losses of one network",
            "a.backward()\nb.backward()\n",
            "a.backward(retain_graph=True)\nb.backward()\n",
        ),
        Example("leave alone: the graph is an earlier step's", "for x in xs:\n    f(x, h).backward()\n", None),
    )

    def propose(self, findings: Findings, earlier: Chain) -> Iterable[Candidate]:
        call = backward_call(findings, earlier)
        edit = set_keyword(call, "retain_graph", "True") if call is not None else None
        if edit is not None:
            patch = candidate(
                findings.book,
                self.name,
                f"keep the graph of the backward in line {earlier[0].span.line} for the second one",
                (edit,),
                preference=1,
            )
            if patch is not None:
                yield patch


def backward_call(findings: Findings, chain: Chain) -> Expression | None:
    """The call of ``backward`` (or ``autograd.grad``) that stands innermost in the user's own files."""
    for frame in chain:
        if frame.editable:
            found = findings.book.expression(frame.span)
            return found if found is not None and isinstance(found.node, cst.Call) else None
    return None


def _root(call: Expression) -> Expression | None:
    """The ``loss`` of ``loss.backward()`` as a statement of its own."""
    node = call.node
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    if node.func.attr.value != "backward" or not isinstance(call.statement.node, cst.Expr):
        return None
    return Expression(call.tree, node.func.value)


def _arguments(call: Expression) -> bool:
    """Whether a backward is given anything but a useless retain_graph."""
    node = call.node
    return isinstance(node, cst.Call) and any(a.keyword is None or a.keyword.value != "retain_graph" for a in node.args)
