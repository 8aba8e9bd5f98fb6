"""The text of the analysed files, and positions in it counted as each format wants them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autodetach.errors import SourceError
from autodetach.model import Edit, Span
from autodetach.report.plain import neutral, width
from autodetach.source.text import SourceText


@dataclass(frozen=True)
class Excerpt:
    """One line of source, and the marks that stand under the part it is about."""

    text: str
    marks: str


@dataclass(frozen=True)
class Region:
    """Lines and columns from 1, columns in code points, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Sources:
    """The files of an outcome. For one that is missing or cannot be decoded, every answer is None."""

    def __init__(self, originals: Mapping[str, bytes]) -> None:
        self._originals = originals
        self._read: dict[str, SourceText | None] = {}

    def get(self, file: str) -> SourceText | None:
        if file not in self._read:
            try:
                self._read[file] = SourceText.decode(file, self._originals[file])
            except (KeyError, SourceError):
                self._read[file] = None
        return self._read[file]

    def region(self, span: Span) -> Region | None:
        source = self.get(span.file)
        start = source.offset(span.line, span.column) if source else None
        end = source.offset(span.end_line, span.end_column) if source else None
        return None if source is None or start is None or end is None else _region(source, start, end)

    def region_of_edit(self, edit: Edit) -> Region | None:
        source = self.get(edit.file)
        return None if source is None else _region(source, edit.start, edit.end)

    def excerpt(self, span: Span) -> Excerpt | None:
        """The span's first line without its indentation, the span underlined."""
        source, region = self.get(span.file), self.region(span)
        if source is None or region is None:
            return None
        line = source.line(source.line_starts[region.line - 1]).rstrip("\r\n")
        start = region.column - 1
        end = region.end_column - 1 if region.end_line == region.line else len(line)
        before, inside = _shown(line[:start]), _shown(line[start:end])
        indent = len(before) - len(before.lstrip())
        return Excerpt(_shown(line).strip(), " " * (width(before) - indent) + "^" * max(1, width(inside)))


def _shown(line: str) -> str:
    return neutral(line.replace("\f", "").replace("\t", "    "))


def _region(source: SourceText, start: int, end: int) -> Region:
    return Region(*_position(source, start), *_position(source, end))


def _position(source: SourceText, offset: int) -> tuple[int, int]:
    line, _ = source.position(offset)
    return line, offset - source.line_starts[line - 1] + 1
