"""A line that rebinds a carried state to its detached value where the next step begins.

Inside a loop over time the same line reads fresh state, which must flow, and the state of the last step, which must
be cut: no edit of that line can tell them apart, a line before the inner loop (or behind the backward pass) can.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import libcst as cst

from autodetach.diagnosis.findings import Findings, Point, Reading
from autodetach.model import Edit, Frame, Span
from autodetach.repairs.interface import Cut, Example
from autodetach.repairs.places import structure_at
from autodetach.source.edits.containers import detached_code
from autodetach.source.edits.lines import insert_after, insert_before
from autodetach.source.statement import Statement


class RebindBefore:
    """Carried state is read by a line that also reads fresh state.

    Rebind the name at the border between two steps: before the inner loop, before the statement, or behind the
    backward pass.
    """

    name: ClassVar[str] = "detach-between-steps"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "a loop over time inside the loop over batches",
            "for batch in data:\n    for x in batch:\n        h = cell(x, h)\n    loss(h).backward()\n",
            "for batch in data:\n    h = h.detach()\n    for x in batch:\n        h = cell(x, h)\n"
            "    loss(h).backward()\n",
        ),
    )

    def cuts(self, findings: Findings) -> Iterable[Cut]:
        for point in findings.points:
            if not point.expression.is_name_like or point.expression.code in ("self", "cls"):
                continue
            readings = findings.cut_at(point)
            if not readings:
                continue
            structure = structure_at(point)
            for path, frame, led_to in paths_in_callers(findings, point, readings):
                code = detached_code(path, structure, repeatable=True)
                if code is None or not _assignable(path):
                    continue
                for rank, edit, place in _places(findings, frame, path, code):
                    yield Cut(self.name, f"rebind {path} to its detached value {place}", (edit,), led_to, rank)


def _assignable(path: str) -> bool:
    try:
        node: Any = cst.parse_expression(path)
    except cst.ParserSyntaxError:
        return False
    return isinstance(node, cst.Name | cst.Attribute | cst.Subscript)


def paths_in_callers(
    findings: Findings, point: Point, readings: frozenset[Reading]
) -> Iterator[tuple[str, Frame, frozenset[Reading]]]:
    """The state's name in the frame that reads it, then in the callers' frames: ``self.h`` is ``model.h`` there.

    With each name come the readings that it leads to: of two layers of a kind each has a name of its own outside.
    """
    found: dict[tuple[str, Span], tuple[Frame, set[Reading]]] = {}
    for reading in sorted(readings, key=repr):
        frames = findings.frames(reading[3])
        inside = [i for i, f in enumerate(frames) if f.span.contains(point.span)]
        if not inside:
            continue
        path: str | None = point.expression.code
        for i in range(inside[0], len(frames)):
            assert path is not None
            found.setdefault((path, frames[i].span), (frames[i], set()))[1].add(reading)
            path = _in_caller(findings, path, frames[i], frames[i + 1]) if i + 1 < len(frames) else None
            if path is None:
                break
    for (name, _), (frame, some) in found.items():
        yield name, frame, frozenset(some)


def _in_caller(findings: Findings, path: str, callee: Frame, caller: Frame) -> str | None:
    call = findings.book.expression(caller.span)
    if call is None or not isinstance(call.node, cst.Call) or not path.startswith("self."):
        return None
    function = call.tree.code(call.node.func)
    owner, _, method = function.rpartition(".")
    base = owner if method == callee.function else function if callee.function in ("forward", "__call__") else ""
    if base in ("super()", "self"):
        return path
    if not base or not all(part.isidentifier() for part in base.split(".")):
        return None
    return base + path[len("self") :]


def _places(findings: Findings, frame: Frame, path: str, code: str) -> Iterator[tuple[int, Edit, str]]:
    """(preference, edit, words) for each place in this frame's function where the rebinding may stand."""
    line = f"{path} = {code}"
    statement = findings.book.statement(frame.span)
    if statement is None:
        return
    loops = statement.loops
    for inner, _ in itertools.pairwise(loops):
        yield from _edit(3, insert_before(inner, line), f"before the loop in line {inner.span.line}")
    if loops:
        yield from _edit(4, insert_before(statement, line), f"before line {statement.span.line}")
    after = behind_backward(findings, statement)
    if after is not None:
        yield from _edit(4, insert_after(after, line), f"after line {after.span.end_line}")
    if not loops and statement.function is not None:
        yield from _edit(5, insert_before(statement, line), f"before line {statement.span.line}")


def _edit(rank: int, edit: Edit | None, place: str) -> Iterator[tuple[int, Edit, str]]:
    if edit is not None:
        yield rank, edit, place


def behind_backward(findings: Findings, statement: Statement) -> Statement | None:
    """The statement of the failing backward in the same function and inside a loop."""
    for frame in findings.failure.chain:
        found = findings.book.statement(frame.span) if frame.editable else None
        if found is None or found.tree is not statement.tree or not found.loops:
            continue
        mine, theirs = statement.function, found.function
        if (mine.node if mine else None) is (theirs.node if theirs else None):
            return found
    return None
