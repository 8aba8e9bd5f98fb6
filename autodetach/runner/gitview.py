"""A repository for the copy: programs ask git for their commit, and must not be able to write to the real
one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

_MOST_REFS = 200
_LARGEST_INDEX = 16 << 20
# No remotes, no hooks, no helpers: the real configuration may hold passwords and commands.
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[gc]\n\tauto = 0\n"


def make_view(root: Path, base: Path) -> tuple[list[str], list[str]]:
    """Write ``base/.git``, which borrows the objects of ``root/.git``; its folders and files, relative to
    ``base``.

    Nothing where ``root`` is no ordinary repository (also in a worktree or a submodule, whose ``.git`` is a
    file).
    """
    real, view = root / ".git", base / ".git"
    if not (real / "HEAD").is_file() or not (real / "objects").is_dir() or real.is_symlink():
        return [], []
    with contextlib.suppress(OSError):
        for folder in ("objects/info", "refs/heads", "refs/tags"):
            (view / folder).mkdir(parents=True)
        (view / "config").write_text(_CONFIG)
        (view / "objects/info/alternates").write_text(f"{os.path.realpath(real / 'objects')}\n")
        for name in ("HEAD", "packed-refs", "shallow"):
            if (real / name).is_file():
                shutil.copyfile(real / name, view / name)
        if (real / "index").is_file() and (real / "index").stat().st_size <= _LARGEST_INDEX:
            shutil.copyfile(real / "index", view / "index")
        _copy_refs(real, view)
    return _names(base, view)


def _copy_refs(real: Path, view: Path) -> None:
    copied = 0
    for folder, _, names in os.walk(real / "refs"):
        for name in names:
            if copied >= _MOST_REFS:
                return
            source = Path(folder, name)
            target = view / source.relative_to(real)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            copied += 1


def _names(base: Path, view: Path) -> tuple[list[str], list[str]]:
    folders, files = [], []
    for folder, _, names in os.walk(view):
        folders.append(os.path.relpath(folder, base))
        files += [os.path.relpath(os.path.join(folder, name), base) for name in names]
    return folders, files
