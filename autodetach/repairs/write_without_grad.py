"""A leaf is overwritten while operations are recorded: an update or an initialisation belongs under ``no_grad``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from autodetach.model import Candidate, Edit
from autodetach.repairs.interface import Example, candidate
from autodetach.repairs.mending import Mending
from autodetach.source.edits.move import wrap_in_with
from autodetach.source.imports import written
from autodetach.source.statement import Statement


class WriteWithoutGrad:
    """A parameter is updated or initialised by hand, in place, while gradients are recorded.

    The writing is no part of the computation: do it with grad mode off. Neighbouring updates share one block.
    """

    name: ClassVar[str] = "write-without-grad"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "updates by hand",
            "w -= 0.1 * w.grad\nb -= 0.1 * b.grad\n",
            "with torch.no_grad():\n    w -= 0.1 * w.grad\n    b -= 0.1 * b.grad\n",
        ),
        Example(
            "an initialisation",
            "net.bias.fill_(0.5)\n",
            "with torch.no_grad():\n    net.bias.fill_(0.5)\n",
        ),
        Example("leave alone: the optimizer updates", "opt.step()\n", None),
    )

    def propose(self, mending: Mending) -> Iterable[Candidate]:
        """One block for each suite, from the first writing to the last; then a block for each writing."""
        statements: dict[object, Statement] = {}
        for site in mending.sites:
            statement = mending.statement(site)
            if statement is None:
                return
            statements[statement.node] = statement
        suites: dict[object, list[Statement]] = {}
        for statement in sorted(statements.values(), key=lambda s: (s.tree.source.name, s.start)):
            suites.setdefault(statement.suite_node, []).append(statement)
        together = [some[0].suite[some[0].index : some[-1].index + 1] for some in suites.values()]
        apart = [[statement] for some in suites.values() for statement in some]
        for preference, groups in enumerate((together, apart)):
            patch = self._patch(mending, groups, preference)
            if patch is not None:
                yield patch

    def _patch(self, mending: Mending, groups: Sequence[Sequence[Statement]], preference: int) -> Candidate | None:
        edits: list[Edit] = []
        lines = []
        for group in groups:
            wrapped = _wrapped(mending, group)
            if wrapped is None:
                return None
            edits += wrapped
            first, last = group[0].span.line, group[-1].span.end_line
            lines.append(str(first) if first == last else f"{first} to {last}")
        words = f"line {', '.join(lines)} with grad mode off"
        return candidate(mending.book, self.name, words, edits, preference=preference)


def _wrapped(mending: Mending, group: Sequence[Statement]) -> tuple[Edit, ...] | None:
    """The group in a block; where its lines cannot be parted from others, what they stand in."""
    module = mending.book.module(group[0].tree.source.name)
    context = written(module, "torch", "no_grad") if module is not None else None
    while context is not None and group:
        edits = wrap_in_with(group, f"{context}()")
        if edits is not None:
            return edits
        block = group[0].block
        group = [block] if block is not None and block.kind in ("For", "While", "If", "With") else []
    return None
