"""A statement of a file: its lines, neighbours, surroundings, and the names it reads and writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from autodetach.model import Span
from autodetach.source import names
from autodetach.source.names import Targets, flat
from autodetach.source.tree import Tree

_LINE_TAIL = re.compile(r"(?:[ \t\f;]|\\(?:\r\n|\r|\n))*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")
_COOKIE = re.compile(r"#!|#.*?coding[:=]")

Suite = cst.Module | cst.IndentedBlock | cst.SimpleStatementSuite


@dataclass(frozen=True)
class Decorator:
    """``code`` is what stands after the ``@``."""

    code: str
    span: Span


@dataclass(frozen=True)
class Statement:
    """One statement: a small one (also where it shares a line) or a compound one with all its suites.

    An ``elif`` is part of its ``if``, as ``else`` and ``except`` are of their statements.
    """

    tree: Tree
    node: cst.BaseSmallStatement | cst.BaseCompoundStatement

    def __repr__(self) -> str:
        return f"Statement({self.kind}, {self.span.place})"

    @property
    def start(self) -> int:
        """Where it starts, decorators excluded."""
        return self.tree.extent(self.node)[0]

    @property
    def end(self) -> int:
        """Where its last small statement ends: no newline, comment or semicolon after it."""
        node: cst.CSTNode = self.node
        while isinstance(node, cst.BaseCompoundStatement):
            node = statements_in(suites_of(node)[-1])[-1]
        return self.tree.extent(node)[1]

    @property
    def span(self) -> Span:
        return self.tree.source.span(self.start, self.end)

    @property
    def code(self) -> str:
        return self.tree.source.text[self.start : self.end]

    @property
    def lines_start(self) -> int:
        """The head of its first line, decorators included."""
        decorators = getattr(self.node, "decorators", ())
        first = self.tree.extent(decorators[0])[0] if decorators else self.start
        return self.tree.source.line_start(first)

    @property
    def lines_end(self) -> int:
        """Behind its last line and that line's newline."""
        tail = _LINE_TAIL.match(self.tree.source.text, self.end)
        return tail.end() if tail else self.end

    @property
    def comments_start(self) -> int:
        """As ``lines_start``, with the comment lines directly above that are indented as it is.

        A shebang and an encoding cookie belong to the file and not to its first statement.
        """
        source = self.tree.source
        start = self.lines_start
        indent = self.indentation
        while start > 0:
            above = source.line_start(start - 1)
            line = source.line(above)
            comment = line.lstrip(" \t\f")
            if not comment.startswith("#") or source.indentation(above) != indent:
                break
            if self.tree.in_string(above):
                break
            if source.position(above)[0] <= 2 and _COOKIE.match(comment):
                break
            start = above
        return start

    @property
    def indentation(self) -> str:
        return self.tree.source.indentation(self.lines_start)

    @property
    def kind(self) -> str:
        return type(self.node).__name__

    @property
    def is_simple(self) -> bool:
        return isinstance(self.node, cst.BaseSmallStatement)

    @property
    def shares_line(self) -> bool:
        """Another statement, or the header of its block, stands on the same logical line."""
        parent = self.tree.parents[self.node]
        if isinstance(parent, cst.SimpleStatementSuite):
            return True
        return isinstance(parent, cst.SimpleStatementLine) and len(parent.body) > 1

    @property
    def in_one_line_suite(self) -> bool:
        return isinstance(self.tree.parents[self.node], cst.SimpleStatementSuite)

    @property
    def decorators(self) -> tuple[Decorator, ...]:
        found = []
        for decorator in getattr(self.node, "decorators", ()):
            start, end = self.tree.outer_extent(decorator.decorator)
            found.append(Decorator(self.tree.source.text[start:end], self.tree.source.span(start, end)))
        return tuple(found)

    @property
    def suite_node(self) -> Suite:
        parent = self.tree.parents[self.node]
        if isinstance(parent, cst.SimpleStatementLine):
            parent = self.tree.parents[parent]
        assert isinstance(parent, (cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite))
        return parent

    @property
    def suite(self) -> list[Statement]:
        """The statements of the suite it stands in, itself among them."""
        return [Statement(self.tree, node) for node in statements_in(self.suite_node)]

    @property
    def index(self) -> int:
        return statements_in(self.suite_node).index(self.node)

    @property
    def suites(self) -> list[list[Statement]]:
        """The suites of a compound statement, in the order of the text."""
        if not isinstance(self.node, cst.BaseCompoundStatement):
            return []
        return [[Statement(self.tree, n) for n in statements_in(suite)] for suite in suites_of(self.node)]

    @property
    def body(self) -> list[Statement]:
        """The first suite; empty for a small statement."""
        return next(iter(self.suites), [])

    @property
    def block(self) -> Statement | None:
        """The compound statement around it."""
        suite = self.suite_node
        return None if isinstance(suite, cst.Module) else statement_of(self.tree, suite)

    @property
    def blocks(self) -> list[Statement]:
        """The compound statements around it, innermost first."""
        found: list[Statement] = []
        block = self.block
        while block is not None:
            found.append(block)
            block = block.block
        return found

    def _within_function(self) -> Iterator[Statement]:
        for block in self.blocks:
            if block.kind in ("FunctionDef", "ClassDef"):
                return
            yield block

    @property
    def loops(self) -> tuple[Statement, ...]:
        """The loops around it in the same function, innermost first."""
        return tuple(block for block in self._within_function() if block.kind in ("For", "While"))

    @property
    def withs(self) -> tuple[Statement, ...]:
        """The ``with`` statements around it in the same function, innermost first; see ``items``."""
        return tuple(block for block in self._within_function() if block.kind == "With")

    @property
    def items(self) -> tuple[str, ...]:
        """The code of each context manager of a ``with``; empty for anything else."""
        if not isinstance(self.node, cst.With):
            return ()
        return tuple(self.tree.code(item.item) for item in self.node.items)

    @property
    def function(self) -> Statement | None:
        """The function definition around it."""
        return next((block for block in self.blocks if block.kind == "FunctionDef"), None)

    @property
    def target_structure(self) -> tuple[Targets, ...]:
        """One entry a target (``a = b = x`` has two); a tuple target is a tuple of entries."""
        return names.targets_of(self.tree, self.node)

    @property
    def targets(self) -> tuple[str, ...]:
        """``target_structure`` made flat: ``features, (self.h, self.c) = …`` has three."""
        return tuple(flat(self.target_structure))

    @cached_property
    def names_read(self) -> frozenset[str]:
        """Names and dotted paths whose value it uses, nested function bodies included."""
        return names.names_read(self.node)

    @cached_property
    def names_written(self) -> frozenset[str]:
        """Names and dotted paths it binds, deletes or writes into; not what its calls may change."""
        return names.names_written(self.node)

    def independent_of(self, other: Statement) -> bool:
        """Whether the two may change places as far as names tell; calls that change an object do not show."""
        return not (
            names.overlap(self.names_written, other.names_read | other.names_written)
            or names.overlap(self.names_read, other.names_written)
        )


def statement_of(tree: Tree, node: cst.CSTNode) -> Statement:
    """The innermost statement that the node is or belongs to; for an ``elif`` the whole ``if``."""
    found: cst.CSTNode | None = node
    while found is not None:
        parent = tree.parents.get(found)
        if isinstance(found, (cst.BaseSmallStatement, cst.BaseCompoundStatement)) and not (
            isinstance(found, cst.If) and isinstance(parent, cst.If)
        ):
            return Statement(tree, found)
        found = parent
    raise ValueError("the node stands in no statement")


def statements_in(suite: Suite | cst.BaseSuite) -> list[cst.BaseSmallStatement | cst.BaseCompoundStatement]:
    """The statements of a suite, those that share a line one by one."""
    found: list[cst.BaseSmallStatement | cst.BaseCompoundStatement] = []
    for entry in suite.body:
        if isinstance(entry, cst.SimpleStatementLine):
            found.extend(entry.body)
        elif isinstance(entry, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            found.append(entry)
    return found


def suites_of(node: cst.CSTNode) -> list[cst.BaseSuite]:
    """The suites of a compound statement, with those of its ``elif``, ``else``, ``except``, ``case`` …."""
    match node:
        case cst.If(body=body, orelse=orelse):
            return [body, *(suites_of(orelse) if orelse else [])]
        case cst.For(body=body, orelse=orelse) | cst.While(body=body, orelse=orelse):
            return [body, *([orelse.body] if orelse else [])]
        case cst.Try() | cst.TryStar():
            parts = [*node.handlers, node.orelse, node.finalbody]
            return [node.body, *(part.body for part in parts if part)]
        case cst.Match(cases=cases):
            return [case.body for case in cases]
        case cst.FunctionDef() | cst.ClassDef() | cst.With() | cst.Else():
            return [node.body]
    return []
