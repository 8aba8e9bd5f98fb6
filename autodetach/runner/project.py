"""Which folder is the user's project: what is copied for a run, and which files may be edited."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from autodetach.errors import UsageError

MARKERS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
FOREIGN = frozenset(
    {
        "site-packages",
        "dist-packages",
        ".git",
        ".hg",
        ".svn",
        "node_modules",
        "__pycache__",
        ".tox",
        ".nox",
        ".eggs",
    }
)
_LEVELS_ABOVE_SCRIPT = 3


@dataclass(frozen=True)
class Project:
    """The folder that is copied for every run, and the program within it.

    ``root`` is absolute with symlinks resolved; ``entry`` is the script relative to it (the module's name for
    ``-m``); ``cwd`` is where the user stands. A ``shallow`` project is one whose root would be the home
    folder, the temp folder or ``/``: of such a root only what looks like source is copied.
    """

    root: Path
    entry: str
    cwd: Path
    module: bool = False
    shallow: bool = False

    @classmethod
    def discover(cls, script: Path | None, module: str | None, cwd: Path) -> Project:
        """Find the project of SCRIPT or ``-m MODULE``.

        Raises UsageError if the script is missing, a folder, or not Python text, or if neither is given.
        """
        cwd = Path(os.path.realpath(cwd))
        if module:
            if script is not None:
                raise UsageError("give either a script or -m MODULE, not both")
            root = _marked_root(cwd, cwd) or cwd
            return cls(root, module, cwd, module=True, shallow=root in _too_wide())
        if script is None:
            raise UsageError("give a script, or -m MODULE")
        given = script if script.is_absolute() else cwd / script
        _check_script(given, script)
        # The folder is resolved, the last component is not: `python link.py` sees the link's own folder as
        # sys.path[0] only after resolving, which is what realpath of the whole path gives too.
        path = Path(os.path.realpath(given))
        root = _root_of(path, cwd)
        return cls(root, path.relative_to(root).as_posix(), cwd, shallow=root in _too_wide())

    def cwd_in(self, copy: Path) -> Path:
        """Where a run in ``copy`` stands: the same place below the root, else a view beside the copy."""
        if self.cwd_inside:
            return copy / self.cwd.relative_to(self.root)
        return copy.parent / "cwd"

    @property
    def cwd_inside(self) -> bool:
        return self.cwd == self.root or self.root in self.cwd.parents

    def is_project_file(self, path: Path | str) -> bool:
        """Whether a file is the user's own: below the root and in no environment or repository folder."""
        try:
            parts = Path(os.path.realpath(path)).relative_to(self.root).parts
        except ValueError:
            return False
        if not parts or any(part in FOREIGN for part in parts):
            return False
        folder = self.root
        for part in parts[:-1]:
            folder = folder / part
            if is_environment(folder):
                return False
        return True


def is_environment(folder: Path | str) -> bool:
    """Whether a folder is a virtual environment or a conda prefix."""
    return os.path.exists(os.path.join(folder, "pyvenv.cfg")) or os.path.isdir(os.path.join(folder, "conda-meta"))


def _check_script(path: Path, shown: Path) -> None:
    try:
        if path.is_dir():
            raise UsageError(f"{shown} is a folder; name the script in it, or use -m for a package")
        if not path.exists():
            raise UsageError(f"no such file: {shown}")
        if not path.is_file():
            raise UsageError(f"{shown} is not a regular file")
        with path.open("rb") as file:
            head = file.read(8192)
    except OSError as error:
        raise UsageError(f"cannot read {shown}: {error.strerror or error}") from None
    if b"\0" in head:
        raise UsageError(f"{shown} is not Python source: it holds binary data")


def _root_of(script: Path, cwd: Path) -> Path:
    folder = script.parent
    marked = _marked_root(folder, cwd)
    if marked is not None:
        return marked
    above = (folder, *folder.parents)[: _LEVELS_ABOVE_SCRIPT + 1]
    if cwd in above and cwd not in _too_wide():
        return cwd
    return folder


def _marked_root(folder: Path, cwd: Path) -> Path | None:
    """The nearest marked ancestor that also holds the cwd; else the nearest marked one."""
    wide = _too_wide()
    marked = [
        place
        for place in (folder, *folder.parents)
        if place not in wide and any((place / marker).exists() for marker in MARKERS)
    ]
    around = [place for place in marked if place == cwd or place in cwd.parents]
    return next(iter(around or marked), None)


def _too_wide() -> frozenset[Path]:
    wide = {
        Path("/"),
        Path(os.path.realpath(tempfile.gettempdir())),
        Path("/tmp"),
        Path("/home"),
        Path("/var/tmp"),
    }
    home = os.path.expanduser("~")
    if home != "~":
        wide.add(Path(os.path.realpath(home)))
    return frozenset(wide)
