"""``retain_graph=True`` left over from an earlier attempt: take it out where the patch makes it needless."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import libcst as cst

from autodetach.diagnosis.recording import Recording
from autodetach.model import Candidate, Edit
from autodetach.repairs.interface import Example, candidate
from autodetach.source.book import SourceBook
from autodetach.source.edits.calls import drop_keyword


@dataclass(frozen=True)
class DropEarlierCure:
    """PyTorch's own hint was followed first: every backward keeps its graph, which is slow and hides the next mistake.

    Once the graph is cut where it should be, nobody needs the kept one. It stays where two backwards of a step really
    share a graph.
    """

    name: ClassVar[str] = "drop-earlier-cure"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "beside the detach",
            "h = cell(x, h)\nloss = net(h).pow(2).mean()\nopt.zero_grad()\nloss.backward(retain_graph=True)\n",
            "h = cell(x, h.detach())\nloss = net(h).pow(2).mean()\nopt.zero_grad()\nloss.backward()\n",
        ),
        Example(
            "leave alone: a second loss goes through the same graph",
            "out = net(x)\nopt.zero_grad()\nout.mean().backward(retain_graph=True)\nout.pow(2).mean().backward()\n",
            None,
        ),
    )

    def beside(self, patch: Candidate, observed: Recording, book: SourceBook) -> Iterable[Candidate]:
        """The patch with all the leftovers taken out, then with each alone."""
        drops: dict[Edit, int] = {}
        for backward in observed.backwards:
            if backward.call != "backward" or backward.create:
                continue  # beside create_graph=True it says only what holds anyway
            frames = [f for f in observed.chain(backward.site) if f.editable]
            for frame in frames[:1]:
                call = book.expression(frame.span)
                edit = drop_keyword(call, "retain_graph") if call is not None else None
                if call is not None and edit is not None and _literally_true(call.node):
                    drops[edit] = frame.span.line
        for some in (list(drops), *([edit] for edit in drops if len(drops) > 1)):
            lines = ", ".join(str(drops[edit]) for edit in some)
            if some:
                more = candidate(
                    book,
                    f"{patch.remedy}+{self.name}",
                    f"{patch.summary}; do not retain the graph in line {lines}",
                    (*patch.edits, *some),
                    preference=patch.preference,
                    same_values=patch.same_values,
                    level=patch.level,
                )
                if more is not None:
                    yield more


def _literally_true(call: cst.BaseExpression) -> bool:
    return isinstance(call, cst.Call) and any(
        a.keyword is not None
        and a.keyword.value == "retain_graph"
        and isinstance(a.value, cst.Name)
        and a.value.value == "True"
        for a in call.args
    )
