"""What of a project is copied for a run, what is linked to, what is left out. Listed once a session."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field
from stat import S_ISREG

from autodetach.runner.project import FOREIGN, Project, is_environment

SKIPPED = FOREIGN | {
    ".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints", ".cache", ".hypothesis",
    ".idea", ".vscode",
}  # fmt: skip
SOURCE = (".py", ".pyi", ".pyx", ".so", ".pyd", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".ipynb")
# A program often writes over or appends to its own outputs of yesterday, which a link into a read-only place
# forbids.
OUTPUTS = (".pt", ".pth", ".ckpt", ".log", ".csv", ".out", ".npz", ".pkl", ".png", ".h5")
OUTPUT_PREFIX = "events.out.tfevents"
SMALL = 1 << 20
_LARGEST_SOURCE = 16 << 20
_LARGEST_OUTPUT = 32 << 20
_MOST_COPIED = 256 << 20
_MOST_ENTRIES = 4000
"""Of one folder without source: beyond, it is linked whole."""
_MOST_SCANNED = 20_000
"""Of the whole project: beyond, folders that hold no source are linked whole."""
_MOST_FILES_COPIED = 4000


@dataclass
class Listing:
    """Paths relative to the root. Every folder precedes what it holds."""

    folders: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    """Large files and folders of many files: a symlink to the original."""
    links: list[tuple[str, str]] = field(default_factory=list)
    """Symlinks of the project with what they point to."""
    notes: list[str] = field(default_factory=list)


def list_project(project: Project) -> Listing:
    """Walk the project, folder by folder; the walk itself is bounded too."""
    listing = Listing()
    budget = _MOST_COPIED
    scanned = 0
    root = str(project.root)
    sized: list[tuple[int, bool, str]] = []
    # Breadth first: what is near the root is copied, what is deep in a heap of data is linked.
    queue = deque([""])
    while queue:
        folder = queue.popleft()
        here = os.path.join(root, folder)
        if folder and scanned > _MOST_SCANNED and not _holds_source(here):
            listing.linked.append(folder)
            continue
        entries, complete = _entries(here, listing)
        scanned += len(entries)
        if folder and not complete:
            listing.linked.append(folder)
            continue
        if folder:
            listing.folders.append(folder)
        for entry in entries:
            path = os.path.join(folder, entry.name)
            if entry.is_symlink():
                listing.links.append((path, os.readlink(entry.path)))
            elif entry.is_dir():
                if entry.name not in SKIPPED and not is_environment(entry.path):
                    _add_folder(project, entry, path, queue, listing)
            else:
                status = entry.stat()
                if not S_ISREG(status.st_mode):
                    continue
                if not os.access(entry.path, os.R_OK):
                    listing.notes.append(f"not readable, left out: {path}")
                elif _wanted(entry.name, status.st_size):
                    sized.append((status.st_size, entry.name.endswith(SOURCE), path))
                else:
                    listing.linked.append(path)
    # Source first, then the small.
    for size, _, path in sorted(sized, key=lambda file: (not file[1], file[0])):
        budget -= size
        fits = budget >= 0 and len(listing.copied) < _MOST_FILES_COPIED
        (listing.copied if fits else listing.linked).append(path)
    return listing


def _add_folder(project: Project, entry: os.DirEntry[str], path: str, queue: deque[str], listing: Listing) -> None:
    if not project.shallow:
        queue.append(path)
    elif entry.name.startswith((".", "autodetach-")):
        return  # a home or temp folder: hidden places hold keys and sockets, not source
    elif _holds_source(entry.path):
        queue.append(path)
    else:
        listing.linked.append(path)


def _holds_source(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(".py") for entry, _ in zip(entries, range(_MOST_ENTRIES), strict=False))
    except OSError:
        return False


def _wanted(name: str, size: int) -> bool:
    if size <= SMALL:
        return True
    if name.endswith(SOURCE):
        return size <= _LARGEST_SOURCE
    return size <= _LARGEST_OUTPUT and (name.endswith(OUTPUTS) or name.startswith(OUTPUT_PREFIX))


def _entries(folder: str, listing: Listing) -> tuple[list[os.DirEntry[str]], bool]:
    """The entries of a folder; not complete if there are very many and no source among the first."""
    found: list[os.DirEntry[str]] = []
    source = False
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found.append(entry)
                source = source or entry.name.endswith((".py", ".pyx"))
                if len(found) > _MOST_ENTRIES and not source:
                    return [], False
    except OSError as error:
        listing.notes.append(f"not readable, left out: {folder} ({error.strerror})")
    return sorted(found, key=lambda entry: entry.name), True
