"""A diff as whole-line replacements: applying them gives what the diff gives."""

from __future__ import annotations

import pytest
import samples
from hypothesis import given
from hypothesis import strategies as st

from autodetach.report.blocks import blocks

LINES = st.lists(
    st.sampled_from(["a\n", "b\n", "\n", "é\x0c\u2028\n", "- c\n", "--- x\n", "+d\r\n"]), max_size=12
)


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
    diff = _diff(old, new)
    assert replaced(old, diff).replace("\r", "") == new.replace("\r", "")


def _diff(old: str, new: str) -> str:
    import difflib

    lines = difflib.unified_diff(_lines(old), _lines(new), "a/x.py", "b/x.py")
    return "".join(lines)


def _lines(text: str) -> list[str]:
    return [line + "\n" for line in text.split("\n")[:-1]]


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
