"""A diff as whole-line replacements: applying them gives what the diff gives."""

from __future__ import annotations

import pytest
import samples
from hypothesis import given
from hypothesis import strategies as st

from autodetach.report.blocks import Block, blocks
from autodetach.source.diff import unified_diff

LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "é\x0c\u2028\n", "- c\n", "--- x\n", "+d\r\n"]), max_size=12)


def replaced(text: str, diff: str) -> str:
    """The blocks put in the way a review comment's suggestion is committed: by line number, bottom up."""
    lines = text.split("\n")
    for block in sorted(blocks(diff), key=lambda block: -block.line):
        assert [line.removesuffix("\r") for line in lines[block.line - 1 : block.last]] == list(block.old)
        lines[block.line - 1 : block.last] = block.new
    return "\n".join(lines)


@given(LINES, LINES)
def test_blocks_give_the_patched_file(before, after):
    old, new = "first\n" + "".join(before), "first\n" + "".join(after)
    diff = unified_diff({"x.py": old.encode()}, {"x.py": new.encode()})
    assert replaced(old, diff).replace("\r", "") == new.replace("\r", "")


def test_names_that_git_quotes():
    name = "sü b/é x.py"
    (block,) = blocks(unified_diff({name: b"a\n"}, {name: b"b\n"}))
    assert block == Block(name, 1, ("a",), ("b",))


def test_insertion_at_the_very_start():
    diff = samples.diff_of("a\nb\n", "new\na\nb\n", "x.py")
    (block,) = blocks(diff)
    assert (block.line, block.old, block.new) == (1, ("a",), ("new", "a"))


def test_a_diff_that_ends_too_early_is_refused():
    text = "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n"
    with pytest.raises(ValueError, match="not a unified diff"):
        blocks(text)


def test_no_diff_has_no_blocks():
    assert blocks("") == []
