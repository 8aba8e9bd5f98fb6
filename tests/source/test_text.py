import pytest

from autodetach.errors import SourceError
from autodetach.source.module import SourceModule
from autodetach.source.text import SourceText


def decoded(data: bytes) -> SourceText:
    return SourceText.decode("train.py", data)


def test_bom_is_remembered_and_left_out():
    source = decoded(b"\xef\xbb\xbfx = 1\n")
    assert source.text == "x = 1\n"
    assert source.encode("y = 1\n") == b"\xef\xbb\xbfy = 1\n"


def test_latin_1_cookie():
    source = decoded(b"# -*- coding: latin-1 -*-\nx = '\xe9'\n")
    assert source.text.endswith("x = 'é'\n")
    assert source.encode(source.text).endswith(b"x = '\xe9'\n")


def test_letters_the_encoding_lacks_are_an_error():
    source = decoded(b"# coding: latin-1\n")
    with pytest.raises(SourceError, match=r"train\.py: cannot be encoded"):
        source.encode("x = '→'\n")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x = '\xe9'\n", "train.py: cannot be decoded"),
        (b"# coding: no-such-code\n", "train.py: cannot be decoded"),
        (b"\xef\xbb\xbf# coding: latin-1\n", "train.py: cannot be decoded"),
        (b"x = 1\0\n", "train.py: contains null bytes"),
        (b"x = 1\ny = (\n", "train.py:2: syntax error"),
        (b"\\\nx = 1\n", "train.py: cannot be parsed without loss"),
        (b"x = 1\nif x\n", "train.py:2: syntax error"),
    ],
)
def test_unreadable_files_are_one_clear_line(data, message):
    with pytest.raises(SourceError) as raised:
        SourceModule.parse("train.py", data)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_newline_is_the_most_frequent_one():
    assert decoded(b"a\r\nb\r\nc\n").newline == "\r\n"
    assert decoded(b"a\rb\rc").newline == "\r"
    assert decoded(b"a").newline == "\n"


@pytest.mark.parametrize(
    ("text", "indent"),
    [
        ("x = 1\n", "    "),
        ("if a:\n\tb\n", "\t"),
        ("if a:\n  if b:\n    c\n", "  "),
        ("if a:  # why\r\n   b\r\n", "   "),
        ("x = {\n  'a':\n     1}\nif a:\n    b\nif a:\n    b\n", "    "),
    ],
)
def test_indent_is_the_most_frequent_step(text, indent):
    assert decoded(text.encode()).indent == indent


def test_columns_are_utf8_bytes_whatever_the_encoding():
    source = decoded(b"# coding: latin-1\nx = '\xe9\xe9'; y = z\n")
    offset = source.text.index("z")
    line, column = source.position(offset)
    assert (line, column) == (2, len("x = 'éé'; y = ".encode()))
    assert source.offset(line, column) == offset


def test_no_position_outside_the_text():
    source = decoded("é = 1\n".encode())
    assert source.offset(0, 0) is None
    assert source.offset(1, 1) is None  # within the letter
    assert source.offset(1, 99) is None
    assert source.offset(9, 0) is None
    assert source.offset(2, 0) == 6


def test_only_pythons_newlines_end_a_line():
    source = decoded("a = '\u2028\x0b\x0c\x85'\rb\r\nc".encode())
    assert [source.line(start) for start in source.line_starts] == [
        "a = '\u2028\x0b\x0c\x85'\r",
        "b\r\n",
        "c",
    ]


def test_a_file_that_libcst_cannot_place_is_refused_in_one_line(monkeypatch):
    def lost(self, provider):
        raise KeyError("IndentedBlock")

    monkeypatch.setattr("autodetach.source.tree.MetadataWrapper.resolve", lost)
    module = SourceModule.parse("train.py", b"if x:\n    y = 1\n")
    with pytest.raises(SourceError, match=r"train\.py: libcst cannot place"):
        module.tree.extent(module.tree.root)
