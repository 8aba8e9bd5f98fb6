"""Shrink a case that a tool gets wrong: drop what can go while the verdict stays."""

from __future__ import annotations

import difflib
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import case as cases
from score import Row, score_case

from .axes import Axes, Impossible, simpler
from .compose import compose, menu
from .forge import Forge
from .proof import Unfit, prove
from .write import read_axes, write_case


@dataclass(frozen=True)
class Smallest:
    """The smallest case found, its verdict, and what the tool said on stderr."""

    axes: Axes
    row: Row
    programs: str
    stderr: str

    def __str__(self) -> str:
        said = [f"{self.row.verdict}: {self.row.why}", "", self.programs, "stderr of the tool:", self.stderr]
        return "\n".join(said)


def kind(row: Row) -> str:
    """What must stay while shrinking: the verdict, and for a bad patch what is bad about it."""
    if row.verdict not in ("wrong", "broken"):
        return row.verdict
    return f"{row.verdict} {re.sub('[0-9]+', '', row.why)[:40]}"


def minimise(folder: Path, tool: str, python: str, say: Callable[[str], None] = print) -> Smallest:
    """The smallest case of the same kind of verdict as the one in ``folder``.

    Greedy: every axis is tried once more after each success. Raises ValueError where the case is correct.
    """
    forge = Forge()
    tried: dict[Axes, Smallest | None] = {}

    def attempt(axes: Axes) -> Smallest | None:
        if axes not in tried:
            try:
                tried[axes] = _score(axes, forge, tool, python)
            except (Impossible, Unfit):
                tried[axes] = None
        return tried[axes]

    try:
        best = attempt(read_axes(folder))
        if best is None or best.row.verdict == "correct":
            raise ValueError(f"{folder.name} is correct, or no longer a case")
        wanted = kind(best.row)
        say(f"{folder.name}: {wanted}")
        shrunk = True
        while shrunk:
            shrunk = False
            for axes in simpler(best.axes, menu(best.axes.cause)):
                found = attempt(axes)
                if found is not None and kind(found.row) == wanted:
                    best, shrunk = found, True
                    say(f"  smaller: {', '.join(axes.tags())}")
                    break
        return best
    finally:
        forge.close()


def _score(axes: Axes, forge: Forge, tool: str, python: str) -> Smallest:
    composed = compose(axes)
    proven = prove(composed, forge)
    with tempfile.TemporaryDirectory() as tmp:
        folder = write_case(proven, 0, Path(tmp) / "case")
        work = Path(tmp) / "work"
        work.mkdir()
        row = score_case(cases.load(folder), tool, python, work)
        stderr = (work / "stderr.txt").read_text(encoding="utf-8")
        printed = (work / "stdout.txt").read_bytes().decode("utf-8", "replace")
    programs = _programs(composed.folders)
    return Smallest(axes, row, f"{programs}\nthe tool's patch:\n{printed}" if printed else programs, stderr)


def _programs(folders: dict[str, dict[str, bytes]]) -> str:
    """The broken program, and the repairs as differences to it."""
    texts = {name: {path: data.decode("utf-8") for path, data in files.items()} for name, files in folders.items()}
    parts = []
    for path, text in texts["before"].items():
        if text:
            parts += [f"--- {path} ---", text]
    for name, files in texts.items():
        for path, text in files.items():
            old, new = texts["before"][path].splitlines(), text.splitlines()
            parts += difflib.unified_diff(old, new, f"before/{path}", f"{name}/{path}", n=0, lineterm="")
    return "\n".join(parts)
