"""Removing a folder that a hostile program has filled: read-only, without rights, deeper than any path may
be.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def remove_tree(folder: Path) -> bool:
    """Remove ``folder`` without ever following a link; True if nothing is left.

    Every subfolder is first moved to the top, so neither recursion nor path length grows with the depth.
    """
    try:
        if folder.is_symlink() or not folder.is_dir():
            folder.unlink(missing_ok=True)
            return True
        top = _open_folder(folder, None)
    except OSError:
        return not os.path.lexists(folder)
    try:
        queue = _empty(top, None, 0)
        serial = len(queue)
        while queue:
            name = queue.pop()
            with contextlib.suppress(OSError):
                below = _open_folder(name, top)
                try:
                    moved = _empty(below, top, serial)
                finally:
                    os.close(below)
                serial += len(moved)
                queue.extend(moved)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not os.path.lexists(folder)


def _open_folder(name: str | Path, within: int | None) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        # Moving a folder elsewhere needs write rights on the folder itself, so this comes before all else.
        os.chmod(name, 0o700, dir_fd=within)
    return os.open(name, flags, dir_fd=within)


def _empty(folder: int, top: int | None, serial: int) -> list[str]:
    """Remove the files of a folder and move its subfolders to ``top`` (None: they are there already)."""
    kept = []
    with os.scandir(folder) as entries:
        listing = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listing:
        with contextlib.suppress(OSError):
            if not is_folder:
                os.unlink(name, dir_fd=folder)
                continue
            if top is None:
                kept.append(name)
                continue
            os.chmod(name, 0o700, dir_fd=folder)
            fresh = f".autodetach-removing-{serial + len(kept)}"
            os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=top)
            kept.append(fresh)
    return kept
