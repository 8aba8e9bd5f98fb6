"""Edits that insert and delete whole statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from autodetach.model import Edit
from autodetach.source.statement import Statement, Suite
from autodetach.source.text import SourceText


def insert_before(statement: Statement, line: str) -> Edit | None:
    """Put ``line`` before the statement and the comments that belong to it; on its line where it shares one.

    ``line`` may be several lines, parted by ``\\n``, indented as seen from the statement; not on a shared
    one.
    """
    source = statement.tree.source
    if statement.shares_line:
        return None if "\n" in line else Edit(source.name, statement.start, statement.start, f"{line}; ")
    start = statement.comments_start
    return Edit(source.name, start, start, indented(source, line, statement.indentation))


def insert_after(statement: Statement, line: str) -> Edit | None:
    """Put ``line`` behind the statement; on its line where it shares one; otherwise as ``insert_before``."""
    source = statement.tree.source
    if statement.shares_line:
        return None if "\n" in line else Edit(source.name, statement.end, statement.end, f"; {line}")
    end = block_end(statement)
    text = indented(source, line, statement.indentation)
    if end == len(source.text) and not source.text.endswith(("\n", "\r")):
        text = source.newline + text.removesuffix(source.newline)
    return Edit(source.name, end, end, text)


def insert_at_start(block: Statement, line: str) -> Edit | None:
    """Put ``line`` at the start of the first suite of a compound statement, behind a docstring."""
    if not block.body:
        return None
    first = block.body[0]
    if block.kind in ("FunctionDef", "ClassDef") and is_docstring(first):
        return insert_after(first, line)
    return insert_before(first, line)


def delete_statement(statement: Statement) -> Edit:
    """Take the statement out; ``pass`` stands in where its suite would be empty. Comments above it stay."""
    (edit,) = removals([statement])
    return edit


def removals(statements: Sequence[Statement], *, comments: bool = False) -> tuple[Edit, ...]:
    """Take out statements of one suite, in their order; ``comments``: with those that belong to them."""
    suite = statements[0].suite
    gone = {statement.node for statement in statements}
    emptied = len(gone) == len(suite) and not isinstance(statements[0].suite_node, cst.Module)
    edits: list[Edit] = []
    for row in rows(suite):
        leaving = [statement.node in gone for statement in row]
        if all(leaving):
            edits.append(_row_removal(row, comments, "pass" if emptied and not edits else ""))
        elif any(leaving):
            edits.extend(_cuts(row, leaving))
    return tuple(edits)


def rows(suite: Sequence[Statement]) -> list[list[Statement]]:
    """The suite's statements, those that share a logical line together."""
    found: list[list[Statement]] = []
    for statement in suite:
        parent = statement.tree.parents[statement.node]
        on_last = found and statement.is_simple and statement.tree.parents[found[-1][0].node] is parent
        if on_last:
            found[-1].append(statement)
        else:
            found.append([statement])
    return found


def _row_removal(row: list[Statement], comments: bool, substitute: str) -> Edit:
    first, last = row[0], row[-1]
    source = first.tree.source
    if first.in_one_line_suite:
        return Edit(source.name, first.start, last.end, substitute)
    start = first.comments_start if comments else first.lines_start
    end = block_end(last)
    if not substitute:
        return Edit(source.name, start, end, "")
    if comments:
        tail = source.newline if source.text[:end].endswith(("\n", "\r")) else ""
        return Edit(source.name, start, end, first.indentation + substitute + tail)
    return Edit(source.name, start, last.end, first.indentation + substitute)


def _cuts(row: list[Statement], leaving: list[bool]) -> Iterator[Edit]:
    """Take some statements, each with one semicolon, out of a line that keeps others."""
    name = row[0].tree.source.name
    for index, statement in enumerate(row):
        if not leaving[index]:
            continue
        if not all(leaving[index:]):
            yield Edit(name, statement.start, row[index + 1].start, "")
        else:
            yield Edit(name, row[index - 1].end, row[-1].end, "")
            return


def block_end(statement: Statement) -> int:
    """Behind its last line, and behind the deeper indented comments that close its block."""
    end = statement.lines_end
    if statement.is_simple:
        return end
    source = statement.tree.source
    depth = len(statement.indentation.expandtabs())
    place = end
    while place < len(source.text):
        line = source.line(place)
        if line.strip():
            if not line.lstrip().startswith("#") or len(source.indentation(place).expandtabs()) <= depth:
                break
            end = source.next_line(place)
        place = source.next_line(place)
    return end


def indented(source: SourceText, code: str, indentation: str) -> str:
    """``code``'s lines, indented, in the file's newline style and with a newline at the end."""
    lines = code.split("\n")
    return "".join(f"{indentation if line else ''}{line}{source.newline}" for line in lines)


def is_docstring(statement: Statement) -> bool:
    return isinstance(statement.node, cst.Expr) and isinstance(
        statement.node.value, (cst.SimpleString, cst.ConcatenatedString)
    )


def suite_of_all(statements: Sequence[Statement]) -> Suite | None:
    """The suite that all the statements stand in, or None."""
    suites = {statement.suite_node for statement in statements}
    return suites.pop() if len(suites) == 1 else None
