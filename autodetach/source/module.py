"""One source file: from a position in it to the expression or the statement that stands there."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from autodetach.model import Span
from autodetach.source.expression import Expression
from autodetach.source.statement import Statement, statements_in, suites_of
from autodetach.source.text import SourceText
from autodetach.source.tree import Tree


class SourceModule:
    """A parsed file. Made by ``SourceModule.parse``; positions are computed when first asked for."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.tree = Tree(source)

    @classmethod
    def parse(cls, name: str, data: bytes) -> SourceModule:
        """``name`` is the path that spans carry. Raises ``SourceError`` if it cannot be read."""
        return cls(SourceText.decode(name, data))

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def text(self) -> str:
        """Decoded; newlines as they are, BOM left out."""
        return self.source.text

    @property
    def newline(self) -> str:
        return self.source.newline

    @property
    def indent(self) -> str:
        return self.source.indent

    def encode(self, text: str) -> bytes:
        """``text`` in the file's own encoding, with its BOM. Raises ``SourceError`` if it cannot be."""
        return self.source.encode(text)

    def offset(self, line: int, byte_column: int) -> int | None:
        """CPython's position as an offset in code points; None for a position outside the text."""
        return self.source.offset(line, byte_column)

    def expression(self, span: Span) -> Expression | None:
        """The expression that has exactly this position for CPython; None rather than a near one.

        Not found: slices, starred arguments, a bare tuple between brackets, the literal parts of an f-string.
        """
        start = self.offset(span.line, span.column)
        end = self.offset(span.end_line, span.end_column)
        if start is None or end is None:
            return None
        node = self.tree.expressions.get((start, end))
        return None if node is None else Expression(self.tree, node)

    @cached_property
    def statements(self) -> list[Statement]:
        """The statements of the module's own suite."""
        return [Statement(self.tree, node) for node in statements_in(self.tree.root)]

    def statement(self, line: int, byte_column: int) -> Statement | None:
        """The innermost statement that holds the position (decorators included), if any."""
        offset = self.offset(line, byte_column)
        if offset is None:
            return None
        found: Statement | None = None
        suites: list[Statement] = self.statements
        while True:
            inner = next((s for s in suites if self._first(s) <= offset < max(s.end, s.start + 1)), None)
            if inner is None:
                return found
            found = inner
            suites = [s for suite in inner.suites for s in suite]

    def _first(self, statement: Statement) -> int:
        decorators = getattr(statement.node, "decorators", ())
        return self.tree.extent(decorators[0])[0] if decorators else statement.start

    def walk(self) -> list[Statement]:
        """Every statement of the file, each before those inside it."""
        found: list[Statement] = []
        waiting: list[cst.BaseSmallStatement | cst.BaseCompoundStatement] = statements_in(self.tree.root)[::-1]
        while waiting:
            node = waiting.pop()
            found.append(Statement(self.tree, node))
            waiting.extend(inner for suite in suites_of(node)[::-1] for inner in statements_in(suite)[::-1])
        return found
