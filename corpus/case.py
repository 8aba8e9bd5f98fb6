"""One case of the corpus: a failing program, what an expert would make of it, and tempting wrong repairs."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDERS = (HERE / "cases", HERE / "own")

CAUSES = frozenset(
    {
        "accumulated-loss",
        "attribute-state",
        "built-once",
        "carried-state",
        "closure",
        "dataset-with-graph",
        "first-order-grad",
        "gan-shared",
        "in-place",
        "no-grad",
        "other",
        "replayed-tensors",
        "requires-grad",
        "shared-graph",
    }
)

WORDINGS = {
    "second-backward": "Trying to backward through the graph a second time",
    "no-grad-fn": "does not require grad",
    "in-place": "modified by an inplace operation",
    "numpy-on-grad": "Can't call numpy() on Tensor that requires grad",
    "unused-input": "differentiated Tensor",
    "deepcopy-non-leaf": "Only Tensors created explicitly by the user",
    "leaf-in-place": "requires grad is being used in an in-place operation",
}
"""The error kinds of ``case.toml`` and the part of torch's message that tells each."""


@dataclass(frozen=True)
class Case:
    """A case folder and what its ``case.toml`` says; README.md describes the keys."""

    folder: Path
    title: str
    source: str
    cause: str
    error: str
    entry: str
    args: tuple[str, ...]
    answer: str
    notes: str
    fails_at: str
    max_steps: int
    hangs: bool
    judge_losses: bool
    tags: tuple[str, ...]
    for_cuda: bool = False

    @property
    def slug(self) -> str:
        return self.folder.name

    @property
    def wording(self) -> str:
        """The part of the error's message by which a run of ``before/`` is recognised."""
        return WORDINGS.get(self.error) or self.error.removeprefix("other:").strip()

    @property
    def before(self) -> Path:
        return self.folder / "before"

    @property
    def experts(self) -> list[Path]:
        """The folders with a right repair: ``after/`` first, then ``after-*``."""
        return sorted(p for p in self.folder.iterdir() if p.is_dir() and p.name.startswith("after"))

    @property
    def wrongs(self) -> list[Path]:
        """The folders with a tempting wrong repair: ``wrong-*``."""
        return sorted(p for p in self.folder.iterdir() if p.is_dir() and p.name.startswith("wrong-"))


def load(folder: Path) -> Case:
    """Read ``folder/case.toml``. Raises KeyError for a missing key, tomllib.TOMLDecodeError for bad TOML."""
    said = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))
    return Case(
        folder=folder,
        title=said["title"],
        source=said["source"],
        cause=said["cause"],
        error=said["error"],
        entry=said["entry"],
        args=tuple(said.get("args", ())),
        answer=said["answer"],
        notes=said["notes"],
        fails_at=said.get("fails_at", ""),
        max_steps=said.get("max_steps", 0),
        hangs=said.get("hangs", False),
        judge_losses=said.get("judge_losses", False),
        tags=tuple(said.get("tags", ())),
        for_cuda=said.get("for_cuda", False),
    )


def find(folders: list[Path] | tuple[Path, ...], slugs: list[str] | tuple[str, ...] = ()) -> list[Case]:
    """All cases below the folders, or those named, in the order of their folders and names."""
    found = [p.parent for top in folders for p in sorted(top.resolve().glob("*/case.toml"))]
    return [load(folder) for folder in found if not slugs or folder.name in slugs]
