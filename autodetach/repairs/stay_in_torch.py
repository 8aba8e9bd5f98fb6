"""A loss is computed from Python numbers that were tensors: keep them tensors all the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import ClassVar

import libcst as cst

from autodetach.model import Candidate
from autodetach.repairs.interface import Example, candidate
from autodetach.repairs.keep_graph import Words, of_tensors
from autodetach.repairs.lost import Lost
from autodetach.source.edits.calls import drop_method_call, replace_expression
from autodetach.source.expression import Expression

MOST = 16


class StayInTorch:
    """``.item()`` or ``float()`` takes a number out of the graph, and ``torch.tensor`` makes a constant of it.

    Where only that stands between the loss and the parameters, the tensor is used as it is; the loss has to have the
    same value as before.
    """

    name: ClassVar[str] = "stay-in-torch"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "a sum of numbers",
            "total += f(net(x), y).item()\nloss = torch.tensor(total)\n",
            "total += f(net(x), y)\nloss = total\n",
        ),
        Example("leave alone: the number is only printed", "print(loss.item())\n", None),
    )

    def propose(self, lost: Lost, left: Sequence[tuple[str, str]]) -> Iterable[Candidate]:
        """``left``: the sites where the numbers that the loss is made of leave torch, each with the call."""
        options: dict[object, list[Words]] = {}
        numbers = [(s.site, "tensor") for s in lost.recording.shades if s.reason == "numbers"]
        for site, call in dict.fromkeys((*left, *numbers)):
            frames = lost.frames(site)
            expression = lost.book.expression(frames[0].span) if frames else None
            if expression is None:
                return
            options[expression.span] = list(_kept(lost, expression, call))
            if (site, call) in numbers and (site, call) not in left:
                options[expression.span].append(("", ()))  # a start value may stay a number
        if not options or not all(options.values()):
            return
        for chosen in list(product(*options.values()))[:MOST]:
            words = "; ".join(dict.fromkeys(words for words, _ in chosen if words))
            patch = candidate(lost.book, self.name, words, [edit for _, edits in chosen for edit in edits])
            if patch is not None:
                yield patch


def _kept(lost: Lost, expression: Expression, call: str) -> Iterable[Words]:
    node = expression.node
    if not isinstance(node, cst.Call):
        return
    words = f"keep the tensor in line {expression.span.line}"
    if call in ("item", "tolist") and isinstance(node.func, cst.Attribute):
        edit = drop_method_call(expression)
        if edit is not None:
            yield words, (edit,)
    elif call == "__float__" and isinstance(node.func, cst.Name) and node.func.value == "float" and len(node.args) == 1:
        edit = replace_expression(expression, Expression(expression.tree, node.args[0].value).outer_code)
        if edit is not None:
            yield words, (edit,)
    elif call in ("tensor", "as_tensor", "__float__"):
        yield from of_tensors(lost, expression)
