"""Edits that move statements to another place or another depth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from autodetach.model import Edit
from autodetach.source.edits.lines import (
    block_end,
    is_docstring,
    removals,
    rows,
    suite_of_all,
)
from autodetach.source.statement import Statement
from autodetach.source.text import SourceText
from autodetach.source.tree import Tree


def move_statements(
    statements: Sequence[Statement],
    *,
    before: Statement | None = None,
    after: Statement | None = None,
    to_start_of: Statement | None = None,
) -> tuple[Edit, ...] | None:
    """Move statements of one suite, in the order of the text, to one other place.

    They are indented anew; comments directly above them come along. Whether the order may change is for the
    caller to know (``Statement.independent_of``). None for a place inside what is moved, and where a line
    would have to be torn apart.
    """
    if to_start_of is not None:
        body = to_start_of.body
        if not body:
            return None
        has_docstring = to_start_of.kind in ("FunctionDef", "ClassDef") and is_docstring(body[0])
        after, before = (body[0], None) if has_docstring else (None, body[0])
    place = before or after
    if place is None or not statements or suite_of_all(statements) is None:
        return None
    moved = sorted(statements, key=lambda statement: statement.start)
    if any(outer.node is s.node for outer in (place, *place.blocks) for s in moved):
        return None
    out = removals(moved, comments=True)
    put = _put_on_line(moved, place, before) if place.shares_line else _put_as_lines(moved, place, before)
    return None if put is None else tuple(sorted((put, *out), key=lambda edit: (edit.start, edit.end)))


def _put_on_line(moved: Sequence[Statement], place: Statement, before: Statement | None) -> Edit | None:
    if not all(s.is_simple and "\n" not in s.code and "\r" not in s.code for s in moved):
        return None
    code = "; ".join(s.code for s in moved)
    at, text = (place.start, f"{code}; ") if before else (place.end, f"; {code}")
    return Edit(place.tree.source.name, at, at, text)


def _put_as_lines(moved: Sequence[Statement], place: Statement, before: Statement | None) -> Edit:
    source = place.tree.source
    text = "".join(_lines_of(moved, place.indentation))
    at = place.comments_start if before else block_end(place)
    if at == len(source.text) and not source.text.endswith(("\n", "\r")):
        text = source.newline + text.removesuffix(source.newline)
    return Edit(source.name, at, at, text)


def _lines_of(moved: Sequence[Statement], indentation: str) -> Iterator[str]:
    """The moved statements as whole lines at that depth; one of a shared line gets a line of its own."""
    nodes = {statement.node for statement in moved}
    for row in rows(moved[0].suite):
        source = row[0].tree.source
        if not row[0].in_one_line_suite and all(s.node in nodes for s in row):
            start, end = row[0].comments_start, block_end(row[-1])
            edits = reindentations(row[0].tree, start, end, row[0].indentation, indentation)
            lines = _spliced(source, start, end, edits)
            yield lines if lines.endswith(("\n", "\r")) else lines + source.newline
        else:
            yield from (f"{indentation}{s.code}{source.newline}" for s in row if s.node in nodes)


def _spliced(source: SourceText, start: int, end: int, edits: Sequence[Edit]) -> str:
    parts, done = [], start
    for edit in edits:
        parts += [source.text[done : edit.start], edit.text]
        done = edit.end
    return "".join((*parts, source.text[done:end]))


def move_out_of_with(block: Statement, statements: Sequence[Statement], *, item: int = 0) -> tuple[Edit, ...] | None:
    """Move direct children of a ``with`` in front of it.

    Where all of them move, its context manager ``item`` goes: alone if there are others, else with the
    header, and the block is dedented. None where the item binds a name, or where only some children move and
    there are other items (they would lose those too).
    """
    node = block.node
    if not isinstance(node, cst.With) or not statements or not 0 <= item < len(node.items):
        return None
    children = {child.node for child in block.body}
    if not {statement.node for statement in statements} <= children:
        return None
    if len({statement.node for statement in statements}) < len(children):
        return move_statements(statements, before=block) if len(node.items) == 1 else None
    if node.items[item].asname is not None:
        return None
    if len(node.items) > 1:
        return (_drop_item(block, node, item),)
    return _dissolve(block)


def _drop_item(block: Statement, node: cst.With, item: int) -> Edit:
    extents = [block.tree.outer_extent(i.item)[:1] + block.tree.extent(i)[1:] for i in node.items]
    name = block.tree.source.name
    if item + 1 < len(node.items):
        return Edit(name, extents[item][0], extents[item + 1][0], "")
    return Edit(name, _item_end(block.tree, node.items[item - 1]), _item_end(block.tree, node.items[item]), "")


def _item_end(tree: Tree, item: cst.WithItem) -> int:
    return tree.outer_extent(item.asname.name if item.asname else item.item)[1]


def _dissolve(block: Statement) -> tuple[Edit, ...]:
    source, first = block.tree.source, block.body[0]
    if first.in_one_line_suite:
        return (Edit(source.name, block.start, first.start, ""),)
    assert isinstance(block.node, cst.With) and isinstance(block.node.body, cst.IndentedBlock)
    header_end = block.tree.extent(block.node.body.header)[1]
    header = Edit(source.name, block.lines_start, header_end, "")
    end = block_end(block)
    inner = first.indentation
    return (header, *reindentations(block.tree, header_end, end, inner, block.indentation))


def wrap_in_with(statements: Sequence[Statement], context: str) -> tuple[Edit, ...] | None:
    """Put ``with context:`` around neighbours in one suite; comments above the first stay above."""
    if not statements or suite_of_all(statements) is None:
        return None
    ordered = sorted(statements, key=lambda statement: statement.start)
    first, last = ordered[0], ordered[-1]
    suite = first.suite
    chosen = {statement.node for statement in ordered}
    if [s.node in chosen for s in suite[first.index : last.index + 1]].count(False):
        return None
    lines = [row for row in rows(suite) if any(s.node in chosen for s in row)]
    torn = any(s.node not in chosen for row in lines for s in row)
    if torn or first.in_one_line_suite:
        return None
    source, outer = first.tree.source, first.indentation
    start = first.lines_start
    header = Edit(source.name, start, start, f"{outer}with {context}:{source.newline}")
    body = reindentations(first.tree, start, block_end(last), outer, outer + source.indent)
    return (header, *body)


def reindentations(tree: Tree, start: int, end: int, old: str, new: str) -> list[Edit]:
    """Change the indentation of the lines between two line starts; lines inside a string keep theirs."""
    source, edits = tree.source, []
    place = start
    while place < end:
        line = source.line(place)
        if line.strip() and line.startswith(old) and not tree.in_string(place):
            # Only what differs: the common head of the two indentations is left alone.
            head = next((i for i in range(min(len(old), len(new))) if old[i] != new[i]), min(len(old), len(new)))
            if old != new:
                edits.append(Edit(source.name, place + head, place + len(old), new[head:]))
        place = source.next_line(place)
    return edits
