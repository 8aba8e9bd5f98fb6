"""Sets of cuts: all that must be cut is cut, nothing is superfluous, and the smallest come first."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace

import pytest

from autodetach.model import Edit
from autodetach.repairs.cover import covers
from autodetach.repairs.interface import Cut
from autodetach.source.book import SourceBook

LINES = 12
TEXT = "".join(f"x{n} = f(h{n})\n" for n in range(10, 10 + LINES))
WIDTH = len("x10 = f(h10)\n")


@pytest.fixture
def findings(tmp_path):
    (tmp_path / "train.py").write_text(TEXT)
    return SimpleNamespace(book=SourceBook(tmp_path))


def cut(name, lines, reads, preference=0):
    """Changes the named lines and cuts the readings."""
    edits = tuple(Edit("train.py", n * WIDTH + 11, n * WIDTH + 11, f"{name}") for n in lines)
    return Cut("detach", name, edits, frozenset(reads), preference)


def names(found):
    return [set(c.summary.split("; ")) for c in found]


def test_one_cut_that_covers_everything_comes_before_two(findings):
    cuts = [cut("a", [0], "r"), cut("b", [1], "s"), cut("both", [2], "rs")]
    assert names(covers(findings, cuts, frozenset("rs"))) == [{"both"}, {"a", "b"}]


def test_fewer_lines_before_fewer_cuts(findings):
    cuts = [cut("a", [0], "r"), cut("b", [1], "s"), cut("wide", [2, 3, 4], "rs")]
    assert names(covers(findings, cuts, frozenset("rs"))) == [{"a", "b"}, {"wide"}]


def test_the_store_before_the_use(findings):
    cuts = [
        cut("use", [0], "r", preference=2),
        cut("store", [1], "r", preference=0),
        cut("hand", [2], "r", preference=1),
    ]
    assert names(covers(findings, cuts, frozenset("r"))) == [{"store"}, {"hand"}, {"use"}]


def test_nothing_where_something_cannot_be_cut(findings):
    assert list(covers(findings, [cut("a", [0], "r")], frozenset("rs"))) == []
    assert list(covers(findings, [], frozenset("r"))) == []
    assert list(covers(findings, [cut("a", [0], "r")], frozenset())) == []


def test_edits_that_overlap_are_no_patch(findings):
    one = Cut("detach", "one", (Edit("train.py", 0, 5, "y"),), frozenset("r"))
    two = Cut("detach", "two", (Edit("train.py", 3, 8, "z"),), frozenset("s"))
    assert list(covers(findings, [one, two], frozenset("rs"))) == []


def test_a_patch_says_of_what_it_is_made(findings):
    one = cut("detach h in line 1", [0], "r", preference=1)
    two = Cut("detach-after-unpacking", "detach c after line 2", cut("b", [1], "s").edits, frozenset("s"), 3)
    [patch] = covers(findings, [one, two], frozenset("rs"))
    assert set(patch.remedy.split("+")) == {"detach", "detach-after-unpacking"}
    assert (patch.changed_lines, patch.preference, len(patch.edits)) == (2, 3, 2)


def brute_force(cuts, required):
    """All covers that no part of which covers."""

    def covered(some):
        return required <= frozenset().union(*(c.covers for c in some))

    sets = [s for n in range(1, 7) for s in itertools.combinations(cuts, n) if covered(s)]
    return [s for s in sets if not any(covered(set(s) - {one}) for one in s)]


@pytest.mark.parametrize("seed", range(12))
def test_against_trying_every_subset(findings, seed):
    rng = random.Random(seed)
    required = frozenset("rstu"[: rng.randrange(2, 5)])
    lines = list(range(LINES))
    rng.shuffle(lines)
    cuts = []
    for i in range(rng.randrange(3, 7)):
        mine = [lines.pop() for _ in range(rng.choice((1, 1, 2)))]
        cuts.append(cut(f"cut{i}", mine, rng.sample(sorted(required), rng.randrange(1, len(required) + 1))))
    expected = brute_force(cuts, required)
    found = list(covers(findings, cuts, required))
    assert len({frozenset(n) for n in names(found)}) == len(found)
    assert {frozenset(n) for n in names(found)} == {frozenset(c.summary for c in s) for s in expected}
    sizes = [c.changed_lines for c in found]
    assert sizes == sorted(sizes)
