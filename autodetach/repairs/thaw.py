"""All parameters were frozen, also those that the optimizer is to train: thaw what it holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import libcst as cst

from autodetach.model import Candidate, Level
from autodetach.repairs.interface import Example, candidate
from autodetach.repairs.lost import Lost
from autodetach.source.edits.lines import insert_after, insert_before
from autodetach.source.edits.move import move_statements
from autodetach.source.expression import Expression
from autodetach.source.statement import Statement


class ThawTrained:
    """``requires_grad = False`` was set for the whole model, its new head included, and the optimizer holds the head.

    The freezing moves before the head is made; or what the optimizer holds is told to require gradients again.
    """

    name: ClassVar[str] = "thaw-trained"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "the new head is frozen with the rest",
            "net.head = nn.Linear(4, 1)\nnet.requires_grad_(False)\nopt = torch.optim.SGD(net.head.parameters())\n",
            "net.requires_grad_(False)\nnet.head = nn.Linear(4, 1)\nopt = torch.optim.SGD(net.head.parameters())\n",
        ),
        Example("leave alone: what the optimizer holds learns", "net.body.requires_grad_(False)\n", None),
    )

    def propose(self, lost: Lost) -> Iterable[Candidate]:
        frozen = lost.recording.frozen
        if frozen is None:
            return
        level = Level.SAFE if frozen.leaves > len(frozen.rows) else Level.UNSAFE
        makers = [self._made(lost, frozen.made[i]) for i in sorted({row[0] for row in frozen.rows})]
        freezing = list(self._freezing(lost, [site for _, _, site in frozen.rows]))
        if len(makers) != 1 or makers[0] is None or len(freezing) != 1:
            return
        statement, path = makers[0]
        freeze = freezing[0]
        head = next((s for s in reversed(freeze.suite[: freeze.index]) if path in s.targets), None)
        if head is not None:
            edits = move_statements([freeze], before=head)
            if edits is not None:
                line = f"move line {freeze.span.line} before line {head.span.line}"
                patch = candidate(lost.book, self.name, line, edits, level=level)
                if patch is not None:
                    yield patch
        behind = freeze.suite_node is statement.suite_node and freeze.start > statement.start
        line = f"{path}.requires_grad_(True)"
        edit = insert_after(freeze, line) if behind else insert_before(statement, line)
        if edit is not None:
            patch = candidate(lost.book, self.name, f"let {path} require gradients", [edit], preference=1, level=level)
            if patch is not None:
                yield patch

    @staticmethod
    def _made(lost: Lost, site: str) -> tuple[Statement, str] | None:
        """The statement that makes the optimizer, and the name of the module whose parameters it is given."""
        frames = lost.frames(site)
        call = lost.book.expression(frames[0].span) if frames else None
        if call is None or not isinstance(call.node, cst.Call) or not call.node.args:
            return None
        match call.node.args[0].value:
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="parameters")), args=[]):
                if Expression(call.tree, owner).is_name_like:
                    return call.statement, call.tree.code(owner)
        return None

    @staticmethod
    def _freezing(lost: Lost, sites: Iterable[str]) -> Iterable[Statement]:
        """The statements that froze, each with the loop that it stands in."""
        found: dict[object, Statement] = {}
        for site in dict.fromkeys(sites):
            for statement in lost.statements(site):
                whole = statement.loops[-1] if statement.loops else statement
                found.setdefault(whole.node, whole)
                break
        yield from found.values()
