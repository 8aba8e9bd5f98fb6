"""A list of losses is never emptied, so every step sums the dead ones again: empty it once they are used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import ClassVar

import libcst as cst

from autodetach.diagnosis.findings import Findings, Point, Reading
from autodetach.diagnosis.recording import Holder
from autodetach.model import Candidate, Edit, Span
from autodetach.repairs.detach_held import between_steps, last_reader
from autodetach.repairs.interface import Cut, Example, candidate
from autodetach.repairs.rebind_before import behind_backward, paths_in_callers
from autodetach.source.edits.lines import insert_after, insert_at_start
from autodetach.source.expression import Expression, Role
from autodetach.source.statement import Statement


class EmptyContainer:
    """Tensors are collected for one backward and stay in the container for the next.

    No expression can be wrapped: detaching what goes in would leave nothing to train. What is missing is a statement
    that empties the container once it was used, or that starts it afresh where it is filled.
    """

    name: ClassVar[str] = "empty-container"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "a list on the agent",
            "loss = torch.stack(self.losses).sum()\nloss.backward()\n",
            "loss = torch.stack(self.losses).sum()\nloss.backward()\nself.losses.clear()\n",
        ),
    )

    def cuts(self, findings: Findings) -> Iterable[Cut]:
        wanted = frozenset(findings.collected & findings.readings.keys())
        if not wanted:
            return
        passed = {
            p.span: p for reading in wanted for pair in findings.readings[reading] for p in findings.passed_by(pair)
        }
        for _, point in sorted(passed.items()):
            if any(path for path in point.places) and point.expression.is_name_like:
                for path, frame, led_to in paths_in_callers(findings, point, wanted):
                    statement = findings.book.statement(frame.span)
                    after = behind_backward(findings, statement) if statement is not None else None
                    for rank, edit, where in self._clearings(path, statement, after):
                        yield Cut(self.name, f"empty {path} {where}", (edit,), led_to, rank)
            afresh = self._afresh(point)
            if afresh is not None:
                yield Cut(self.name, f"keep only the newest in line {point.span.line}", (afresh,), wanted, 2)
        yield from self._where_it_lies(findings, wanted)

    def _where_it_lies(self, findings: Findings, wanted: frozenset[Reading]) -> Iterable[Cut]:
        """By the names that the frames of the backward have for the container."""
        for holder in findings.reference.holders.values():
            readings, paths = findings.held_at([holder])
            if not readings & wanted or not all(paths):
                continue
            for rank, edit, where in between_steps(findings, holder, f"{holder.path}.clear()", unread=True):
                yield Cut(self.name, f"empty {holder.path} {where}", (edit,), readings & wanted, rank)

    def after_use(self, findings: Findings, holders: Iterable[Holder]) -> Iterable[Candidate]:
        """Empty the lists that lie there when a backward pass has used them up: all of one frame, at one place."""
        frames: dict[Span, list[Holder]] = defaultdict(list)
        for holder in holders:
            frames[holder.span].append(holder)
        found = []
        for some in frames.values():
            paths = list(dict.fromkeys(holder.path for holder in some))
            singly = [[path] for path in paths]
            for chosen in (*singly, paths) if len(paths) > 1 else singly:
                line = "\n".join(f"{path}.clear()" for path in chosen)
                for rank, edit, where in between_steps(findings, some[0], line, unread=True):
                    words = f"empty {', '.join(chosen)} {where}"
                    found.append(candidate(findings.book, self.name, words, (edit,), preference=rank))
        patches = [patch for patch in found if patch is not None]
        yield from sorted(patches, key=lambda c: (c.changed_lines, c.preference))

    @staticmethod
    def _clearings(path: str, statement: Statement | None, after: Statement | None) -> Iterable[tuple[int, Edit, str]]:
        line = f"{path}.clear()"
        last = last_reader(after, path) if after is not None else None
        if last is not None:
            edit = insert_after(last, line)
            if edit is not None:
                yield 1, edit, f"after line {last.span.end_line}"
        if statement is not None and statement.loops:
            edit = insert_at_start(statement.loops[0], line)
            if edit is not None:
                yield 3, edit, f"at the start of the loop in line {statement.loops[0].span.line}"

    @staticmethod
    def _afresh(point: Point) -> Edit | None:
        """``xs.append(x)`` → ``xs = [x]``."""
        statement = point.expression.statement
        node = statement.node
        call = node.value if isinstance(node, cst.Expr) else None
        if point.expression.role is not Role.ARGUMENT or not isinstance(call, cst.Call) or len(call.args) != 1:
            return None
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "append":
            return None
        tree = statement.tree
        owner = Expression(tree, call.func.value)
        if not isinstance(owner.node, cst.Name | cst.Attribute) or call.args[0].value is not point.expression.node:
            return None
        return Edit(tree.source.name, statement.start, statement.end, f"{owner.code} = [{point.expression.code}]")
