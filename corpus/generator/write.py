"""Write a proven case in the format of the corpus, and read its axes again."""

from __future__ import annotations

import json
import shutil
import tomllib
from dataclasses import asdict
from pathlib import Path

from .axes import Axes
from .causes import CAUSES
from .forge import write
from .proof import Proven


def slug(axes: Axes, number: int) -> str:
    """A name that tells the case's main axes."""
    words = [axes.cause, axes.scenario, axes.container if axes.container != "bare" else axes.model, axes.layout]
    return "-".join(dict.fromkeys(words)) + f"-{number:04d}"


def write_case(proven: Proven, number: int, top: Path) -> Path:
    """The case as a folder below ``top``."""
    composed, axes = proven.composed, proven.composed.axes
    folder = top / slug(axes, number)
    shutil.rmtree(folder, ignore_errors=True)
    for name, files in proven.folders.items():
        write(files, folder / name)
    draft = composed.draft
    said = {
        "title": draft.title,
        "source": "generated: corpus/generate.py",
        "cause": cause_name(axes),
        "error": proven.error,
        "entry": composed.entry,
        "args": list(composed.args),
        "answer": "patch",
        "fails_at": proven.fails_at,
        **({"judge_losses": True} if draft.judge_losses else {}),
        "tags": list(axes.tags()),
        "notes": draft.notes,
    }
    lines = [f"{key} = {_quoted(value)}" for key, value in said.items()]
    lines += ["", "[axes]", *(f"{key} = {_quoted(value)}" for key, value in asdict(axes).items())]
    (folder / "case.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def cause_name(axes: Axes) -> str:
    """The cause as case.toml has it; state on an object is a cause of its own there."""
    name = CAUSES[axes.cause].name
    if name == "carried-state" and (axes.holder in ("model", "buffer") or axes.layout == "trainer"):
        return "attribute-state"
    return name


def read_axes(folder: Path) -> Axes:
    """The axes that a generated case was made from."""
    said = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))["axes"]
    return Axes(**{key: tuple(value) if isinstance(value, list) else value for key, value in said.items()})


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)  # JSON's strings, numbers, flags and lists are TOML's, too
