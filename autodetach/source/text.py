"""The text of one source file: decoding, lines, and CPython's byte columns against offsets in code points."""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from autodetach.errors import SourceError
from autodetach.model import Span

NEWLINE = re.compile(r"\r\n|\r|\n")
"""What ends a line for CPython. ``str.splitlines`` knows more (form feeds, U+2028) and cannot be used."""

_INDENT = re.compile(r":[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n)([ \t]+)[^\s#]")


@dataclass(frozen=True)
class SourceText:
    """A decoded file. Offsets are code points into ``text``; ``text`` keeps its newlines and has no BOM."""

    name: str
    text: str
    encoding: str
    bom: bool

    @classmethod
    def decode(cls, name: str, data: bytes) -> SourceText:
        """Decode as CPython does: BOM, then PEP 263 cookie, then UTF-8. Raises ``SourceError``."""
        bom = data.startswith(codecs.BOM_UTF8)
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            encoding = "utf-8" if bom else encoding
            text = data[len(codecs.BOM_UTF8) if bom else 0 :].decode(encoding)
        except (SyntaxError, UnicodeError, LookupError) as error:
            raise SourceError(f"{name}: cannot be decoded: {error}") from None
        if "\0" in text:
            raise SourceError(f"{name}: contains null bytes")
        return cls(name, text, encoding, bom)

    def encode(self, text: str) -> bytes:
        """``text`` in this file's encoding, with its BOM. Raises ``SourceError`` if it lacks a letter."""
        try:
            return (codecs.BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)
        except UnicodeError as error:
            raise SourceError(f"{self.name}: cannot be encoded: {error}") from None

    @cached_property
    def newline(self) -> str:
        """The most frequent line ending; ``\\n`` where there is none."""
        found = Counter(NEWLINE.findall(self.text))
        return max(found, key=lambda newline: found[newline], default="\n")

    @cached_property
    def indent(self) -> str:
        """The most frequent indentation step of a block; four spaces where there is no block."""
        steps: Counter[str] = Counter()
        for block in _INDENT.finditer(self.text):
            outer = self.indentation(block.start())
            if block[1].startswith(outer) and block[1] != outer:
                steps[block[1][len(outer) :]] += 1
        return max(steps, key=lambda step: steps[step], default="    ")

    @cached_property
    def line_starts(self) -> list[int]:
        return [0, *(newline.end() for newline in NEWLINE.finditer(self.text))]

    def line_start(self, offset: int) -> int:
        return self.line_starts[bisect_right(self.line_starts, offset) - 1]

    def next_line(self, offset: int) -> int:
        """Where the line after the one that holds ``offset`` starts; the end of the text for the last one."""
        index = bisect_right(self.line_starts, offset)
        return self.line_starts[index] if index < len(self.line_starts) else len(self.text)

    def line(self, start: int) -> str:
        """The line that starts at ``start``, with its newline."""
        return self.text[start : self.next_line(start)]

    def indentation(self, offset: int) -> str:
        """The white space at the head of the line that holds ``offset``; a form feed starts it afresh."""
        found = re.compile(r"[ \t\f]*").match(self.text, self.line_start(offset))
        assert found is not None
        return found[0].rpartition("\f")[2]

    def offset(self, line: int, byte_column: int) -> int | None:
        """CPython's position (line from 1, column in UTF-8 bytes) as an offset; None outside the text."""
        if not 1 <= line <= len(self.line_starts) or byte_column < 0:
            return None
        start = self.line_starts[line - 1]
        content = self.line(start)
        if content.isascii():
            return start + byte_column if byte_column <= len(content) else None
        encoded = content.encode()
        if byte_column > len(encoded):
            return None
        try:
            return start + len(encoded[:byte_column].decode())
        except UnicodeDecodeError:
            return None

    def position(self, offset: int) -> tuple[int, int]:
        """The inverse of ``offset``."""
        line = bisect_right(self.line_starts, offset)
        return line, len(self.text[self.line_starts[line - 1] : offset].encode())

    def span(self, start: int, end: int) -> Span:
        return Span(self.name, *self.position(start), *self.position(end))
