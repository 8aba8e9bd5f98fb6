"""The loss is cut off its graph by a ``detach()``, or by a new tensor made of old ones: keep the tensors themselves."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import ClassVar

import libcst as cst

from autodetach.model import Candidate, Edit
from autodetach.repairs.interface import Example, candidate
from autodetach.repairs.lost import Lost
from autodetach.source.edits.calls import drop_method_call, replace_expression
from autodetach.source.edits.lines import delete_statement
from autodetach.source.expression import Expression
from autodetach.source.imports import written

Words = tuple[str, tuple[Edit, ...]]


class KeepTheGraph:
    """The only way from the loss to the parameters is cut by the program itself.

    A ``detach()`` or ``.data`` on it goes; where a tensor is made anew of tensors, they are stacked, or taken as they
    are.
    """

    name: ClassVar[str] = "keep-the-graph"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "a detach on the way to the loss",
            "out = net(x).detach()\nloss = f(out, y)\n",
            "out = net(x)\nloss = f(out, y)\n",
        ),
        Example(
            "a new tensor of losses",
            "loss = torch.tensor([one, two]).mean()\n",
            "loss = torch.stack([one, two]).mean()\n",
        ),
        Example(
            "leave alone: the loss has another way to the parameters",
            "loss = f(net(x), net(x).detach())\n",
            None,
        ),
    )

    def propose(self, lost: Lost) -> Iterable[Candidate]:
        options = []
        for shade in lost.to_keep:
            frames = lost.frames(shade.site)
            expression = lost.book.expression(frames[0].span) if frames else None
            if expression is None:
                return
            made = without_detach(expression) if shade.reason == "detached" else list(of_tensors(lost, expression))
            options.append(made)
        if not options or not all(options):
            return
        for chosen in product(*options):
            words = "; ".join(dict.fromkeys(words for words, _ in chosen))
            patch = candidate(lost.book, self.name, words, [edit for _, edits in chosen for edit in edits])
            if patch is not None:
                yield patch


def without_detach(expression: Expression) -> list[Words]:
    """The edit that takes a ``detach()`` or ``.data`` away from its tensor."""
    node = expression.node
    words = f"keep the graph in line {expression.span.line}"
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value == "detach_" and expression.parent is None and expression.statement.kind == "Expr":
            return [(words, (delete_statement(expression.statement),))]
        edit = drop_method_call(expression)
    elif isinstance(node, cst.Attribute) and node.attr.value == "data":
        edit = replace_expression(expression, Expression(expression.tree, node.value).outer_code)
    else:
        edit = None
    return [(words, (edit,))] if edit is not None else []


def of_tensors(lost: Lost, expression: Expression) -> Iterable[Words]:
    """``torch.tensor(x)`` as ``x``, or as ``torch.stack(x)``, which is given what ``tensor`` was."""
    node = expression.node
    if not isinstance(node, cst.Call) or not node.args or node.args[0].star:
        return
    argument = Expression(expression.tree, node.args[0].value)
    line = expression.span.line
    display = isinstance(argument.node, cst.List | cst.Tuple | cst.ListComp)
    if not display:
        edit = replace_expression(expression, argument.outer_code)
        if edit is not None:
            yield f"take {_short(argument.code)} as it is in line {line}", (edit,)
    module = lost.book.module(expression.tree.source.name)
    stack = written(module, "torch", "stack") if module is not None else None
    if stack is not None and not argument.is_bare_generator:
        edit = replace_expression(expression, f"{stack}({argument.outer_code})")
        if edit is not None:
            yield f"stack {_short(argument.code)} in line {line}", (edit,)


def _short(code: str) -> str:
    line = " ".join(code.split())
    return line if len(line) <= 40 else line[:37] + "..."
