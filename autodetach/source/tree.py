"""The concrete syntax tree of one file, and where in the text each of its nodes stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import TypeVar

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from autodetach.errors import SourceError
from autodetach.source.text import NEWLINE, SourceText

Node = TypeVar("Node", bound=cst.CSTNode)

_NAMES_ONLY: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.Attribute: ("attr",),
    cst.Arg: ("keyword",),
    cst.Param: ("name",),
    cst.FunctionDef: ("name",),
    cst.ClassDef: ("name",),
    cst.Import: ("names",),
    cst.ImportFrom: ("module", "names"),
    cst.NameItem: ("name",),
    cst.ExceptHandler: ("name",),
    cst.ExceptStarHandler: ("name",),
    cst.MatchAs: ("name",),
    cst.MatchStar: ("name",),
    cst.MatchMapping: ("rest",),
    cst.MatchKeywordElement: ("key",),
    cst.TypeVar: ("name",),
    cst.TypeVarTuple: ("name",),
    cst.ParamSpec: ("name",),
}
"""Fields whose nodes are expressions for libcst but plain names for CPython."""

INTERPOLATED = (cst.FormattedString, getattr(cst, "TemplatedString", cst.FormattedString))
"""f-strings, and t-strings where libcst knows them."""

STRINGS = (cst.SimpleString, *INTERPOLATED)

_LEADING_FEED = re.compile(r"(?m)^[ \t\f]*\f")


class Tree:
    """Nodes, parents and extents (code point offsets, own parentheses excluded) of one file.

    Raises ``SourceError`` where the file cannot be parsed.
    """

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self._parsed, self._shifts = _without_form_feeds(source.text)
        try:
            self.root = cst.parse_module(self._parsed)
            round_trip = self.root.code == self._parsed
        except cst.ParserSyntaxError as error:
            raise SourceError(f"{source.name}:{error.raw_line}: syntax error") from None
        except (RecursionError, ValueError) as error:
            raise SourceError(f"{source.name}: cannot be parsed: {type(error).__name__}") from None
        if not round_trip:
            raise SourceError(f"{source.name}: cannot be parsed without loss")

    @cached_property
    def _spans(self) -> dict[cst.CSTNode, tuple[int, int]]:
        wrapper = MetadataWrapper(self.root, unsafe_skip_copy=True)
        try:
            found = wrapper.resolve(ByteSpanPositionProvider)
        except KeyError as error:  # seen once in a fuzzed file: libcst had no end of a block
            raise SourceError(f"{self.source.name}: libcst cannot place {error}") from None
        if self._parsed.isascii():
            at = list(range(len(self._parsed)))
        else:
            at = [index for index, letter in enumerate(self._parsed) for _ in letter.encode()]
        # libcst counts a newline behind the last line also where there is none.
        at += [len(self._parsed)] * 3
        return {
            node: (self._shifted(at[span.start]), self._shifted(at[span.start + span.length]))
            for node, span in found.items()
        }

    def _shifted(self, offset: int) -> int:
        if not self._shifts:
            return offset
        index = bisect_right(self._shifts, (offset, len(self.source.text)))
        return offset + (self._shifts[index - 1][1] if index else 0)

    @cached_property
    def parents(self) -> dict[cst.CSTNode, cst.CSTNode]:
        parents: dict[cst.CSTNode, cst.CSTNode] = {}
        waiting: list[cst.CSTNode] = [self.root]
        while waiting:
            node = waiting.pop()
            for child in node.children:
                parents[child] = node
                waiting.append(child)
        return parents

    @cached_property
    def expressions(self) -> dict[tuple[int, int], cst.BaseExpression]:
        """By extent, the nodes that are expressions for CPython too."""
        found: dict[tuple[int, int], cst.BaseExpression] = {}
        waiting: list[cst.CSTNode] = [self.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, cst.BaseExpression) and not self._is_only_part(node):
                found[self.extent(node)] = node
            hidden = {
                id(part) for field in _NAMES_ONLY.get(type(node), ()) for part in _as_sequence(getattr(node, field))
            }
            waiting.extend(child for child in node.children if id(child) not in hidden)
        return found

    def _is_only_part(self, node: cst.BaseExpression) -> bool:
        """Whether CPython has no node for it: of ``'a' 'b'`` a piece, of ``a and b and c`` a pair."""
        parent = self.parents.get(node)
        if isinstance(node, cst.StarredElement) or isinstance(parent, cst.ConcatenatedString):
            return True
        return (
            isinstance(node, cst.BooleanOperation)
            and isinstance(parent, cst.BooleanOperation)
            and isinstance(node.operator, type(parent.operator))
            and not node.lpar
        )

    def extent(self, node: cst.CSTNode) -> tuple[int, int]:
        """Start and end as CPython gives them: a tuple's and a generator's own parentheses belong to it."""
        if isinstance(node, (cst.Tuple, cst.GeneratorExp)) and node.lpar:
            return self._spans[node.lpar[-1]][0], self._spans[node.rpar[0]][1]
        if isinstance(node, cst.GeneratorExp):
            # The only argument of a call: it has the call's parentheses for its own.
            call = self.above(node, cst.Call)
            assert call is not None
            opening = self.source.text.index("(", self.outer_extent(call.func)[1])
            return opening, self._spans[call][1]
        return self._spans[node]

    def outer_extent(self, node: cst.CSTNode) -> tuple[int, int]:
        """Start and end, every parenthesis around the node included."""
        if isinstance(node, cst.BaseExpression) and node.lpar:
            return self._spans[node.lpar[0]][0], self._spans[node.rpar[-1]][1]
        return self.extent(node)

    @cached_property
    def multiline_strings(self) -> list[tuple[int, int]]:
        """The extents of the string literals that go over several lines."""
        extents = (self.extent(node) for node in self.parents if isinstance(node, STRINGS))
        return [extent for extent in extents if NEWLINE.search(self.source.text, *extent)]

    def in_string(self, line_start: int) -> bool:
        """Whether a line starts within a string literal: what looks like code or comment there is none."""
        return any(opening < line_start < closing for opening, closing in self.multiline_strings)

    def code(self, node: cst.CSTNode) -> str:
        start, end = self.extent(node)
        return self.source.text[start:end]

    def above(self, node: cst.CSTNode, kind: type[Node]) -> Node | None:
        """The nearest ancestor of that kind."""
        parent = self.parents.get(node)
        while parent is not None and not isinstance(parent, kind):
            parent = self.parents.get(parent)
        return parent


def _as_sequence(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _without_form_feeds(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text as libcst can read it, and (offset, shift) pairs back to the original.

    libcst loses a form feed in an indentation. CPython starts counting columns afresh there, so what stands
    before it can be left out; anywhere else a blank does as well.
    """
    if "\f" not in text:
        return text, []
    parts: list[str] = []
    shifts: list[tuple[int, int]] = []
    kept = done = 0
    for feed in _LEADING_FEED.finditer(text):
        parts.append(text[done : feed.start()])
        kept += feed.start() - done
        done = feed.end()
        shifts.append((kept, done - kept))
    parts.append(text[done:])
    return "".join(parts).replace("\f", " "), shifts
