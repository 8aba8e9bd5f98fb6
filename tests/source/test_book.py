"""What a run names is read only where it is a source file of the project."""

import os

import pytest

from autodetach.model import Span
from autodetach.source.book import SourceBook


@pytest.fixture
def book(tmp_path):
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    (root / "sub/a.py").write_text("x = 1\n")
    (root / "broken.py").write_text("x = = 1\n")
    (tmp_path / "key.py").write_text("key = 'secret'\n")
    os.mkfifo(root / "pipe.py")
    return SourceBook(root)


def test_a_file_of_the_project_is_read_once(book):
    module = book.module("sub/a.py")
    (book.root / "sub/a.py").write_text("edited meanwhile\n")
    assert book.module("sub/a.py") is module and book.originals == {"sub/a.py": b"x = 1\n"}


@pytest.mark.parametrize(
    "name",
    ["../key.py", "sub/../../key.py", "/etc/passwd", "<string>", "pipe.py", "sub", "gone.py", "broken.py", "a\0b", ""],
)
def test_nothing_else_is(book, name):
    assert book.module(name) is None and book.originals == {}
    assert book.expression(Span(name, 1, 0, 1, 1)) is None and book.code(Span(name, 1, 0, 1, 1)) == ""
