"""numpy reads the values of a tensor that carries a graph: hand it a detached one, or keep only detached ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import libcst as cst

from autodetach.diagnosis.findings import Reading
from autodetach.model import Candidate, Edit
from autodetach.repairs.cover import covers
from autodetach.repairs.interface import Cut, Example
from autodetach.repairs.mending import Mending, short
from autodetach.repairs.places import structure_at, within
from autodetach.source.edits.containers import has_tensor
from autodetach.source.edits.detach import detach_expression
from autodetach.source.expression import Expression, Role

MOVES = frozenset({"cpu", "numpy", "squeeze", "contiguous"})
"""Methods that may as well be called on the detached tensor."""


class DetachForNumpy:
    """numpy, a plot or a metric wants the values of a tensor that requires gradients.

    Only looking at values needs no graph: detach the operand; where a list of such tensors is looked at, detach what is
    put into it, so that it does not keep every step's graph alive.
    """

    name: ClassVar[str] = "detach-for-numpy"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "predictions for a metric",
            "predicted = net(x).numpy()\n",
            "predicted = net(x).detach().numpy()\n",
        ),
        Example(
            "losses kept for a plot",
            "losses.append(loss)\nprint(np.mean(losses))\n",
            "losses.append(loss.detach())\nprint(np.mean(losses))\n",
        ),
        Example("leave alone: the values have no graph", "labels = y.numpy()\n", None),
    )

    def propose(self, mending: Mending) -> Iterable[Candidate]:
        """Patches that detach whatever numpy reads, each as few edits as can be."""
        cuts = [*self._where_it_passes(mending), *self._at_the_call(mending), *self._before_the_call(mending)]
        yield from covers(mending, cuts, mending.readings)

    def _before_the_call(self, mending: Mending) -> Iterable[Cut]:
        """What else may be done where the call is."""
        return ()

    def _where_it_passes(self, mending: Mending) -> Iterable[Cut]:
        kept: set[Reading] = set()
        for point in reversed(mending.points):  # of all hand-overs the last is the one where the value is kept
            edit = detach_expression(point.expression, structure_at(point))
            readings = mending.cut_at(point)
            if edit is None or not readings:
                continue
            if any(within(mending.recording.chain(site)[:1], point) for site, _ in readings):
                rank = 1 if _before_moves(point.expression).node is point.expression.node else 2
            elif point.expression.role in (Role.ARGUMENT, Role.ITEM):
                rank = 1 if readings <= kept else 0
                kept |= readings
            else:  # the tensor's making, or its return: the loss may be made of it
                rank = 3
            yield self._cut(point.expression, edit, readings, rank)

    def _at_the_call(self, mending: Mending) -> Iterable[Cut]:
        """The operand of the call itself, which may be a parameter, or stand where nothing could be followed."""
        for site, some in mending.sites.items():
            call = mending.call(site)
            if call is None or not isinstance(call.node, cst.Call):
                continue
            names = {name: structure for each in some for name, structure in each.names if has_tensor(structure)}
            readings = frozenset((site, each.value) for each in some)
            for operand, structure in _operands(call, names):
                edit = detach_expression(operand, structure)
                if edit is not None:
                    yield self._cut(operand, edit, readings, 1)

    def _cut(self, expression: Expression, edit: Edit, readings: frozenset[Reading], preference: int) -> Cut:
        summary = f"detach {short(expression.code)} in line {expression.span.line}"
        return Cut(self.name, summary, (edit,), readings, preference)


def _operands(call: Expression, names: Mapping[str, Any]) -> Iterable[tuple[Expression, Any]]:
    node = call.node
    assert isinstance(node, cst.Call)
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in ("numpy", "__array__", *MOVES):
        yield _before_moves(Expression(call.tree, node.func.value)), "tensor"
        return
    for argument in (Expression(call.tree, a.value) for a in node.args if not a.star):
        yield argument, names.get(argument.code, "tensor")


def _before_moves(receiver: Expression) -> Expression:
    """``x.cpu()`` → ``x``: what is detached needs no graph on the way, either."""
    node = receiver.node
    while (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value in MOVES
        and not node.args
    ):
        node = node.func.value
    return Expression(receiver.tree, node)
