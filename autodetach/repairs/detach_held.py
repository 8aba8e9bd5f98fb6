"""A statement between two steps that cuts what is carried from one to the next, wherever it lies.

No expression can be wrapped where one line makes and reads the state for every moment of a sequence, where the state
lies in a library's object, or where a total is a float before the first addition. What the frames held after each
backward pass (:mod:`autodetach.agent.holders`) tells by which name the state can be reached there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import libcst as cst

from autodetach.diagnosis.findings import Findings
from autodetach.diagnosis.recording import Holder
from autodetach.model import Edit
from autodetach.repairs.interface import Cut, Example
from autodetach.repairs.places import marked
from autodetach.source.edits.containers import detached_code
from autodetach.source.edits.lines import insert_after, insert_at_start
from autodetach.source.statement import Statement

_INDEX = re.compile(r"\[(\d+)\]")
_VARIABLES = ("layer", "part", "holder")


class DetachHeld:
    """State lies in an object when a step ends, and the next step reads it with its graph.

    Between two steps, assign its detached value to where it lies, or call the object's own method that does so.
    """

    name: ClassVar[str] = "detach-held-state"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "the model keeps its state over several moments of a batch",
            "for x in data:\n    loss = 0.0\n    for moment in x:\n        loss = loss + net(moment).pow(2).mean()\n"
            "    train(loss)\n",
            "for x in data:\n    net.memory = net.memory.detach()\n    loss = 0.0\n    for moment in x:\n"
            "        loss = loss + net(moment).pow(2).mean()\n    train(loss)\n",
        ),
    )

    def cuts(self, findings: Findings) -> Iterable[Cut]:
        alike: dict[Any, list[Holder]] = defaultdict(list)
        able: dict[Any, list[Holder]] = defaultdict(list)
        for holder in findings.reference.holders.values():
            _, paths = findings.held_at([holder])
            if not paths or not _reachable(findings, holder):
                continue
            for method in holder.methods:
                able[holder.span, method].append(holder)
            if len(_INDEX.findall(holder.path)) == 1:
                alike[holder.span, *_INDEX.split(holder.path)[::2]].append(holder)
            code = detached_code(holder.path, marked(holder.structure, set(paths)), repeatable=True)
            if code is not None and code != holder.path:
                line = f"{holder.path}.detach_()" if holder.is_parameter else f"{holder.path} = {code}"
                yield from self._everywhere(findings, [holder], line, f"insert {line}")
        for (_, (owner, name)), rows in able.items():
            yield from self._everywhere(findings, rows, f"{owner}.{name}()", f"insert {owner}.{name}()")
        for (_, before, after), rows in alike.items():
            if len(rows) > 1 and after:
                yield from self._in_a_loop(findings, before, after, rows)

    def _in_a_loop(self, findings: Findings, before: str, after: str, rows: list[Holder]) -> Iterator[Cut]:
        """Several layers of a list hold their own state: one loop over them."""
        code = detached_code("{0}" + after, rows[0].structure, repeatable=True)
        statement = findings.book.statement(rows[0].span)
        if code is None or statement is None:
            return
        text = statement.tree.source.text
        variable = next((v for v in _VARIABLES if not re.search(rf"\b{v}\b", text)), None)
        if variable is not None:
            loop = f"for {variable} in {before}:\n    {variable}{after} = {code.replace('{0}', variable)}"
            yield from self._everywhere(findings, rows, loop, f"detach every {before}[…]{after}")

    def _everywhere(self, findings: Findings, holders: list[Holder], line: str, words: str) -> Iterator[Cut]:
        readings, _ = findings.held_at(holders)
        if readings:
            for rank, edit, where in between_steps(findings, holders[0], line):
                yield Cut(self.name, f"{words} {where}", (edit,), readings, rank)


def _reachable(findings: Findings, holder: Holder) -> bool:
    """Whether a statement in that frame can assign to the path: no bare global name without its declaration."""
    try:
        node: Any = cst.parse_expression(holder.path)
    except cst.ParserSyntaxError:
        return False
    if not isinstance(node, cst.Name | cst.Attribute | cst.Subscript):
        return False
    if not holder.is_global or not isinstance(node, cst.Name):
        return True
    statement = findings.book.statement(holder.span)
    function = statement.function if statement is not None else None
    return function is None or re.search(rf"^\s*global\b.*\b{node.value}\b", function.code, re.MULTILINE) is not None


def between_steps(
    findings: Findings, holder: Holder, line: str, *, unread: bool = False
) -> Iterator[tuple[int, Edit, str]]:
    """(preference, edit, words) of the places in the holder's frame where one step is over and the next not begun.

    ``unread``: and where nobody in the backward's block reads the holder any more, for a log or a result.
    """
    statement = findings.book.statement(holder.span)
    if statement is None:
        return
    last = last_reader(statement, holder.path) if unread else statement
    places: list[tuple[int, Edit | None, str]] = []
    loops, condition = statement.loops, _conditional(statement)
    if loops and not condition and _bound_before(loops[0], holder.path.split(".")[0].split("[")[0]):
        places.append(
            (3, insert_at_start(loops[0], line), f"at the start of the loop in line {loops[0].span.line}"),
        )
    if last is not None:
        places.append((3 if condition else 4, insert_after(last, line), f"after line {last.span.end_line}"))
    if not loops and statement.function is not None:
        at = statement.function
        places.append((4, insert_at_start(at, line), f"at the start of {at.node.name.value}"))  # type: ignore[union-attr]
    yield from ((rank, edit, where) for rank, edit, where in places if edit is not None)


def last_reader(statement: Statement, path: str) -> Statement | None:
    """The last statement of the block that reads the path, from this one on; None if it leaves the block with it."""
    readers = [s for s in statement.suite if s.start > statement.start and path in s.names_read]
    if any(s.kind in ("Return", "Raise") for s in readers):
        return None
    return readers[-1] if readers else statement


def _bound_before(loop: Statement, name: str) -> bool:
    """Whether the name has a value when the loop begins: what only the loop's own body binds has none."""
    if not any(name in s.names_written for s in (loop, *loop.body)):
        return True
    outer = [loop, *loop.blocks]
    earlier = (s for each in outer for s in each.suite if s.start < each.start)
    if any(name in s.names_written for s in earlier):
        return True
    function = loop.function
    if function is None:
        return False
    header = function.tree.source.text[function.start : function.body[0].start]
    return re.search(rf"\b{name}\b", header) is not None


def _conditional(statement: Statement) -> bool:
    """Whether it runs only in some turns of its loop (or calls of its function)."""
    for block in statement.blocks:
        if block.kind in ("For", "While", "FunctionDef", "ClassDef"):
            return False
        if block.kind in ("If", "Match"):
            return True
    return False
