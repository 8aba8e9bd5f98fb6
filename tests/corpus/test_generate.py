"""The generator of cases: the same seed, the same cases; and a broken program is the healthy one with one thing out."""

from __future__ import annotations

import difflib
import random
import subprocess
import sys
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
sys.path.insert(0, str(CORPUS))  # its scripts import one another by name, as `python corpus/generate.py` does

import case as cases  # noqa: E402
import check  # noqa: E402
from generator.axes import LAYOUTS, STYLES, Axes, Impossible, draw, simpler  # noqa: E402
from generator.causes import CAUSES  # noqa: E402
from generator.compose import MOST_LINES, Composed, attempts, compose, menu  # noqa: E402
from generator.containers import CONTAINERS, Container  # noqa: E402
from generator.draft import assigned, used  # noqa: E402
from generator.marks import guards, render  # noqa: E402
from generator.write import read_axes, slug  # noqa: E402

MOST_LINES_OF_AN_EDIT = 12


def composed(seed: int, count: int) -> Iterator[Composed]:
    """The first possible program of each of ``count`` cases; nothing is run."""
    for number in range(count):
        for axes in attempts(seed, number):
            try:
                yield compose(axes)
                break
            except Impossible:
                continue
        else:
            pytest.fail(f"case {number} of seed {seed} has no possible program")


@pytest.fixture(scope="module")
def many() -> list[Composed]:
    return list(composed(7, 200))


def changed(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """The lines that one of the two programs has and the other has not."""
    lines = []
    for path, content in before.items():
        old, new = content.decode().splitlines(), after[path].decode().splitlines()
        lines += [line for line in difflib.ndiff(old, new) if line.startswith(("- ", "+ "))]
    return lines


def test_same_seed_same_bytes(many: list[Composed]) -> None:
    again = list(composed(7, 40))
    assert [c.folders for c in again] == [c.folders for c in many[:40]]
    other = list(composed(8, 40))
    assert sum(a.folders == b.folders for a, b in zip(again, other, strict=True)) == 0


def test_programs_differ_by_the_intended_edit_alone(many: list[Composed]) -> None:
    for case in many:
        before = case.folders["before"]
        for name, files in case.folders.items():
            assert set(files) == set(before)
            edit = changed(before, files)
            assert name == "before" or 1 <= len(edit) <= MOST_LINES_OF_AN_EDIT, (case.axes, name, edit)


def test_no_mark_and_no_variable_is_left(many: list[Composed]) -> None:
    for case in many:
        for files in case.folders.values():
            for text in files.values():
                assert not set("⟦⟧¦$") & set(text.decode("utf-8")), case.axes


def test_programs_have_the_length_of_small_real_ones(many: list[Composed]) -> None:
    lengths = [sum(len(text.splitlines()) for text in case.folders["before"].values()) for case in many]
    assert min(lengths) >= 20
    assert max(lengths) <= MOST_LINES
    assert all(case.entry in case.folders["before"] for case in many)


def test_the_space_is_covered(many: list[Composed]) -> None:
    seen = Counter(tag for case in many for tag in case.axes.tags())
    for cause, entry in CAUSES.items():
        assert seen[f"cause={cause}"]
        assert all(seen[f"scenario={scenario}"] for scenario in entry.menu.scenarios)
    assert all(seen[f"layout={layout}"] for layout in LAYOUTS)
    assert all(seen[f"container={container}"] for container in CONTAINERS)
    assert all(seen[f"styles={style}"] for style in STYLES)


def test_layout_styles_reach_the_bytes(many: list[Composed]) -> None:
    for case in many:
        for text in case.folders["before"].values():
            styles = case.axes.styles
            assert (b"\r\n" in text) == ("crlf" in styles and b"\n" in text)
            assert text.startswith(b"\xef\xbb\xbf") == ("bom" in styles and bool(text))
            assert "tabs" not in styles or b"\n    " not in text
            assert "no-final-newline" not in styles or not text.endswith(b"\n")


def test_simpler_cases_are_simpler_and_come_to_an_end() -> None:
    rng = random.Random(1)
    for cause in CAUSES:
        axes = draw(rng, cause, menu(cause))
        for _ in range(60):
            following = list(simpler(axes, menu(cause)))
            if not following:
                break
            assert axes not in following
            axes = following[0]
        else:
            pytest.fail(f"{cause} is never simple")
        assert (axes.styles, axes.extras, axes.files, axes.depth) == ((), (), "one", 1)


def test_an_axis_leaves_the_small_choices_alone() -> None:
    [*_, axes] = attempts(3, 0)
    plain = Axes(**{**axes.__dict__, "styles": (), "files": "one"})
    assert axes.rng("rate").random() == plain.rng("rate").random()


@pytest.mark.parametrize(
    ("present", "text"),
    [
        (set(), "h = f(x)\nuse(h)"),
        ({"store"}, "h = f(x).detach()\nuse(h)"),
        ({"use"}, "h = f(x)\nuse(h.detach())"),
        ({"between"}, "h = f(x)\nh = h.detach()\nuse(h)"),
    ],
)
def test_marks(present: set[str], text: str) -> None:
    marked = "h = f(x)⟦store?.detach()⟧\n⟦between?h = h.detach()⟧\nuse(h⟦use?.detach()⟧)"
    assert render(marked, present) == text
    assert guards(marked) == {"store", "between", "use"}


def test_marks_nest_and_choose() -> None:
    marked = "⟦sum?(a + b).backward()¦a.backward(⟦keep?retain_graph=True⟧)⟧\n⟦sum?¦b.backward()⟧"
    assert render(marked, set()) == "a.backward()\nb.backward()"
    assert render(marked, {"keep"}) == "a.backward(retain_graph=True)\nb.backward()"
    assert render(marked, {"sum"}) == "(a + b).backward()"


def test_names_of_a_draft() -> None:
    lines = ["$out, ($h, $c) = $model($x)", '$state["h"] = $h', "⟦end?$total = $total + 1⟧", "if $x == 1:"]
    assert assigned(lines) == ["out", "h", "c", "total"]
    assert used(lines) == ["out", "h", "c", "model", "x", "state", "total"]


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("in_place", [False, True])
def test_containers_hold_what_they_are_given(kind: str, in_place: bool) -> None:
    """Pack, read, store and cut, executed with numbers that know how to detach."""
    box = Container(kind, ("h",) if kind == "bare" else ("h", "c"), updates_in_place=in_place)
    names = ["one", "two"][: len(box.parts)]
    lines = [
        "from collections import deque",
        "from dataclasses import dataclass",
        "from typing import NamedTuple",
        box.definition,
        f"state = {box.pack(names)}",
        *box.store("state", names[::-1]),
        *box.cut("state"),
        f"found = [{', '.join(box.read('state'))}]",
    ]

    class Number(int):
        def detach(self) -> Number:
            return Number(self + 10)

    scope: dict[str, object] = {
        "one": Number(1),
        "two": Number(2),
        "torch": types.SimpleNamespace(Tensor=int),
        "__name__": __name__,
    }
    exec("\n".join(lines), scope)
    assert scope["found"] == ([11] if kind == "bare" else [12, 11])


def test_cases_that_were_run_are_well_formed(tmp_path: Path) -> None:
    command = [sys.executable, str(CORPUS / "generate.py"), "--seed", "7", "--count", "4", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = cases.find([tmp_path])
    assert len(found) == 4
    for case in found:
        assert check.format_problems(case) == []
        assert case.fails_at
        axes = read_axes(case.folder)
        assert case.slug.startswith(slug(axes, 0)[:-4])
        made = compose(axes).folders["before"]
        files = {str(path): data for path, data in check.snapshot(case.before).items()}
        assert files == made
