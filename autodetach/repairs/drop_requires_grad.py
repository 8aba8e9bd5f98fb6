"""``requires_grad_()`` or ``requires_grad=True`` on a tensor that nobody optimises: take it away."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Protocol

import libcst as cst

from autodetach.diagnosis.findings import Findings
from autodetach.diagnosis.recording import Leaf
from autodetach.model import Edit, Frame
from autodetach.repairs.interface import Cut, Example
from autodetach.source.book import SourceBook
from autodetach.source.edits.calls import drop_keyword, drop_method_call
from autodetach.source.edits.lines import delete_statement


class DropRequiresGrad:
    """Data was made to require gradients, so everything computed from it carries a graph.

    Nobody reads those gradients and no optimizer holds the tensor: without the flag there is no graph to go stale.
    """

    name: ClassVar[str] = "drop-requires-grad"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("a factory", "w = torch.randn(3, requires_grad=True)\n", "w = torch.randn(3)\n"),
        Example("a method", "y = load().requires_grad_()\n", "y = load()\n"),
        Example(
            "leave alone: an optimizer holds it",
            "w = torch.zeros(3, requires_grad=True)\nSGD([w], 0.1)\n",
            None,
        ),
    )

    def cuts(self, findings: Findings) -> Iterable[Cut]:
        edits: dict[str, Edit] = {}
        for leaf in findings.leaves:
            if is_spurious(leaf) and leaf.site is not None and leaf.site not in edits:
                edit = without_flag(findings, leaf.site)
                if edit is not None:
                    edits[leaf.site] = edit
        if not edits:
            return
        covers = frozenset(
            reading
            for reading, pairs in findings.readings.items()
            if all(p.leaves and all(leaf.site in edits and is_spurious(leaf) for leaf in p.leaves) for p in pairs)
        )
        if covers:
            used = {leaf.site for r in covers for p in findings.readings[r] for leaf in p.leaves}
            chosen = tuple(edit for site, edit in edits.items() if site in used)
            lines = ", ".join(str(findings.frames(site)[0].span.line) for site in edits if site in used)
            # where it is as small as a detach: the flag is the mistake, what is computed from it only carries it on
            yield Cut(self.name, f"drop requires_grad in line {lines}", chosen, covers, -1)


def is_spurious(leaf: Leaf) -> bool:
    """Made to require gradients by a call of the program's, held by no optimizer, and no module's parameter."""
    return leaf.optimizer is None and leaf.site is not None and not leaf.parameter


class Framed(Protocol):
    """Whatever knows the calls of a site that stand in the user's files, innermost first."""

    @property
    def book(self) -> SourceBook: ...

    def frames(self, site: str | None) -> tuple[Frame, ...]: ...


def without_flag(findings: Framed, site: str) -> Edit | None:
    """The edit that makes the call at the site mark no tensor as requiring a gradient."""
    frames = findings.frames(site)
    if not frames:
        return None
    expression = findings.book.expression(frames[0].span)
    if expression is not None and isinstance(expression.node, cst.Call):
        function = expression.node.func
        if isinstance(function, cst.Attribute) and function.attr.value == "requires_grad_":
            return drop_method_call(expression)
        return drop_keyword(expression, "requires_grad")
    statement = findings.book.statement(frames[0].span)
    if statement is not None and statement.targets and statement.targets[0].endswith(".requires_grad"):
        return delete_statement(statement)
    return None
