"""How many lines a patch changes, ours and the expert's, is counted the same way."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "corpus"))

import minimality

BEFORE = "a\nb\nc\nd\ne\nf\ng\nh\n"
CASES = {
    "a line replaced": ("a\nB\nc\nd\ne\nf\ng\nh\n", 1),
    "a line put in": ("a\nb\nnew\nc\nd\ne\nf\ng\nh\n", 1),
    "a line taken out": ("a\nb\nd\ne\nf\ng\nh\n", 1),
    "two lines made three": ("a\nB\nC\nnew\nd\ne\nf\ng\nh\n", 3),
    "a line moved": ("b\nc\nd\ne\nf\ng\na\nh\n", 2),
    "nothing": (BEFORE, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_a_diff_and_two_folders_are_counted_alike(tmp_path, name):
    text, lines = CASES[name]
    for folder, content in (("before", BEFORE), ("after", text), ("after-longer", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.py").write_text(content)
    diff = "".join(difflib.unified_diff(BEFORE.splitlines(True), text.splitlines(True), "a/train.py", "b/train.py"))
    assert minimality.changed_in_diff(diff) == minimality.changed_by_expert(tmp_path) == lines


def test_what_is_larger_than_the_experts_is_named(tmp_path, capsys):
    case, kept = tmp_path / "cases" / "one", tmp_path / "kept" / "one"
    for folder, content in (("before", BEFORE), ("after", "A" + BEFORE[1:])):
        (case / folder).mkdir(parents=True)
        (case / folder / "train.py").write_text(content)
    kept.mkdir(parents=True)
    (kept / "fix.diff").write_text("--- a/train.py\n+++ b/train.py\n@@ -1 +1,2 @@\n-a\n+A\n+B\n")
    assert minimality.main([str(tmp_path / "kept"), str(tmp_path / "cases")]) == 0
    told = capsys.readouterr().out
    assert "2 lines, the expert 1" in told and "0 of 1 patches" in told
