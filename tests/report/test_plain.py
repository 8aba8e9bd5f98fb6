"""Text of a program is shown without its power over the terminal; marks stand under what they mean."""

from __future__ import annotations

import unicodedata

import pytest
import samples
from hypothesis import given
from hypothesis import strategies as st

from autodetach.model import Edit, Span
from autodetach.report.plain import neutral, width
from autodetach.report.sources import Region, Sources


@given(st.text())
def test_nothing_that_moves_a_cursor_is_left(text):
    shown = neutral(text, keep="\t\n")
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs") and c not in "\t\n"]
    shown.encode("utf-8")
    if text.isprintable() and text.isascii():
        assert shown == text


def test_letters_of_all_languages_stay():
    for text in ("größe", "状態", "حالة", "👩‍🔬", "e\u0301"):
        assert neutral(text) == text
    assert (width("größe"), width("状態"), width("e\u0301")) == (5, 4, 1)


@pytest.mark.parametrize(
    ("line", "piece", "shown", "marks"),
    [
        ("    x = f(a)  ", "f(a)", "x = f(a)", "    ^^^^"),
        ("\tx = 状(態) + b", "b", "x = 状(態) + b", " " * 13 + "^"),
        ("\x0cdef g(): pass", "g", "def g(): pass", "    ^"),
        ("s = '\x1b[2J', b", "b", "s = '\\x1b[2J', b", " " * 15 + "^"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_marks_stand_under_what_is_meant(line, piece, shown, marks, newline):
    text = f"# first{newline}{line}{newline}"
    column = len(line[: line.rindex(piece)].encode())
    span = Span("x.py", 2, column, 2, column + len(piece.encode()))
    excerpt = Sources({"x.py": text.encode()}).excerpt(span)
    assert (excerpt.text, excerpt.marks) == (shown, marks)


@pytest.mark.parametrize(
    ("before", "encoding"), [("", "utf-8"), ("", "utf-8-sig"), ("# -*- coding: latin-1 -*-\n", "latin-1")]
)
def test_columns_in_every_encoding(before, encoding):
    text = before + "ä = ö(ü)\n"
    line = text.count("\n")
    # CPython counts the bytes of the UTF-8 that it makes of a source, whatever the file's encoding.
    span = Span("x.py", line, len("ä = ".encode()), line, len("ä = ö(ü)".encode()))
    sources = Sources({"x.py": text.encode(encoding)})
    assert sources.region(span) == Region(line, 5, line, 9)
    start = text.index("ö")
    assert sources.region_of_edit(Edit("x.py", start, start + 4, "x")) == Region(line, 5, line, 9)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"# -*- coding: nonsense -*-\n", None])
def test_what_cannot_be_read_is_passed_over(content):
    sources = Sources({} if content is None else {"x.py": content})
    span = Span("x.py", 1, 0, 1, 1)
    assert sources.region(span) is None
    assert sources.excerpt(span) is None


@pytest.mark.parametrize("place", [(0, 0), (99, 0), (8, 999)])
def test_places_outside_the_file_are_passed_over(place):
    sources = Sources({"train.py": samples.BEFORE.encode()})
    assert sources.excerpt(Span("train.py", *place, *place)) is None
