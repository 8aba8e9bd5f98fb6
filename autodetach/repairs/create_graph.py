"""A gradient that a loss is made of needs a graph of its own: ``create_graph=True``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from autodetach.model import Candidate
from autodetach.repairs.interface import Example, candidate
from autodetach.repairs.lost import Lost
from autodetach.source.edits.calls import set_keyword


class CreateGraph:
    """``autograd.grad`` without ``create_graph`` hands out constants: a penalty made of them trains nothing."""

    name: ClassVar[str] = "create-graph"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "a gradient penalty",
            "g, = torch.autograd.grad(out.sum(), x)\n",
            "g, = torch.autograd.grad(out.sum(), x, create_graph=True)\n",
        ),
        Example(
            "leave alone: the gradient is only looked at",
            "g, = torch.autograd.grad(out.sum(), x)\nprint(g)\n",
            None,
        ),
    )

    def propose(self, lost: Lost) -> Iterable[Candidate]:
        yield from create_graph_at(lost, [s.site for s in lost.because("first-order")])


def create_graph_at(lost: Lost, sites: Iterable[str]) -> Iterable[Candidate]:
    edits, lines = [], []
    for site in dict.fromkeys(sites):
        frames = lost.frames(site)
        call = lost.book.expression(frames[0].span) if frames else None
        edit = set_keyword(call, "create_graph", "True") if call is not None else None
        if edit is None:
            return
        edits.append(edit)
        lines.append(str(frames[0].span.line))
    patch = candidate(lost.book, CreateGraph.name, f"create_graph=True in line {', '.join(lines)}", edits)
    if patch is not None:
        yield patch
