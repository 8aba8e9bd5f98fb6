"""A fresh scratch copy of the project for every run, and nothing of it left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from autodetach.errors import RunError, SourceError
from autodetach.runner.gitview import make_view
from autodetach.runner.listing import Listing, list_project
from autodetach.runner.project import Project
from autodetach.runner.removal import remove_tree

_FICLONE = 0x40049409
_MOST_VIEWED = 2000


class Workspace:
    """Copies come from ``base``, filled once: all runs see the project as it was at the first, edits
    meanwhile or not.

    ``runs`` and ``base`` are folders of the session.
    """

    def __init__(self, project: Project, session_folder: Path) -> None:
        self._project = project
        self._runs = session_folder / "runs"
        self._base = session_folder / "base"
        self._listing: Listing | None = None
        self._serial = 0
        self._lock = threading.Lock()
        self._reflinks = True
        self.size = 0
        """Bytes that one copy takes on disk, once the first is made."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be copied, once the first copy is made."""
        return tuple(self._listing.notes) if self._listing else ()

    def prepare(self) -> Listing:
        """Keep the project as it is now, for all copies; the first call alone does something. Raises RunError."""
        try:
            with self._lock:
                if self._listing is None:
                    self._listing = self._fill_base()
                return self._listing
        except OSError as error:
            raise self._unwritable(error) from None

    def fresh(self, patch: Mapping[str, bytes] | None = None) -> Path:
        """A new copy; ``patch`` maps project-relative POSIX paths to the bytes that stand there instead.

        Raises SourceError for a patch that climbs out of the project, RunError where the copy cannot be
        written.
        """
        listing = self.prepare()
        try:
            with self._lock:
                self._serial += 1
                home = self._runs / str(self._serial)
            root = home / (self._project.root.name or "root")
            root.mkdir(parents=True)
            self._copy(listing, root)
            for path, content in (patch or {}).items():
                self._place(root, path, content)
            self._make_cwd(root)
        except OSError as error:
            raise self._unwritable(error) from None
        return root

    def _unwritable(self, error: OSError) -> RunError:
        reason = error.strerror or str(error)
        return RunError(f"cannot make a scratch copy in {self._runs}: {reason}; set TMPDIR to a place with room")

    def discard(self, root: Path) -> None:
        """Remove one copy with what the run left in it."""
        remove_tree(root.parent)

    def _fill_base(self) -> Listing:
        listing = list_project(self._project)
        self._base.mkdir(exist_ok=True)
        for folder in listing.folders:
            (self._base / folder).mkdir()
        kept = []
        for path in listing.copied:
            try:
                self._copy_file(self._project.root / path, self._base / path)
                kept.append(path)
            except OSError as error:
                if error.filename is None or str(error.filename).startswith(str(self._base)):
                    raise
                listing.notes.append(f"not readable, left out: {path}")
        folders, files = make_view(self._project.root, self._base)
        listing.folders += folders
        listing.copied = kept + files
        self.size = sum(os.lstat(self._base / path).st_blocks * 512 for path in listing.copied)
        return listing

    def _copy(self, listing: Listing, root: Path) -> None:
        for folder in listing.folders:
            os.mkdir(root / folder)
        origin, base, target = str(self._project.root), str(self._base), str(root)
        for path in listing.copied:
            self._copy_file(os.path.join(base, path), os.path.join(target, path))
        for path in listing.linked:
            os.symlink(os.path.join(origin, path), os.path.join(target, path))
        for path, aim in listing.links:
            os.symlink(self._aim(path, aim, root), os.path.join(target, path))

    def _aim(self, path: str, aim: str, root: Path) -> str:
        """Where a project's own symlink leads in the copy: within it if it stayed in the project."""
        origin = str(self._project.root)
        absolute = os.path.normpath(os.path.join(origin, os.path.dirname(path), aim))
        if absolute != origin and not absolute.startswith(origin + os.sep):
            return absolute
        inside = os.path.relpath(absolute, origin)
        # What was left out of the copy (an environment, say) is still there in the original.
        return os.path.join(root, inside) if os.path.lexists(root / inside) else absolute

    def _copy_file(self, source: str | Path, target: str | Path) -> None:
        with open(source, "rb") as reading, open(target, "xb") as writing:
            os.fchmod(writing.fileno(), (os.fstat(reading.fileno()).st_mode & 0o777) | 0o600)
            if self._reflinks:
                try:
                    _clone(writing.fileno(), reading.fileno())
                    return
                except OSError:
                    self._reflinks = False
            shutil.copyfileobj(reading, writing, 1 << 20)

    def _place(self, root: Path, path: str, content: bytes) -> None:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or "\0" in path:
            raise SourceError(f"a patch may not leave the project: {path!r}")
        folder = root
        for part in parts[:-1]:
            folder = folder / part
            if folder.is_symlink():
                _open_up(folder)
            folder.mkdir(exist_ok=True)
        target = folder / parts[-1]
        mode = None
        with contextlib.suppress(OSError):
            mode = target.stat().st_mode & 0o777
            target.unlink()
        target.write_bytes(content)
        if mode is not None:
            target.chmod(mode | 0o600)

    def _make_cwd(self, root: Path) -> None:
        """Where the user stands outside the project: a folder of links to what is there, with the copy in its
        place.
        """
        if self._project.cwd_inside:
            return
        view = self._project.cwd_in(root)
        view.mkdir()
        here = self._project.cwd
        down = self._project.root.relative_to(here).parts if here in self._project.root.parents else ()
        _view(here, view, except_for=down[0] if down else "")
        for depth, part in enumerate(down[:-1]):
            view, here = view / part, here / part
            view.mkdir()
            _view(here, view, except_for=down[depth + 1])
        if down:
            (view / down[-1]).symlink_to(root)


def _view(origin: Path, view: Path, *, except_for: str = "") -> None:
    with contextlib.suppress(OSError), os.scandir(origin) as entries:
        for entry, _ in zip(entries, range(_MOST_VIEWED), strict=False):
            if entry.name not in (except_for, ".git"):
                os.symlink(entry.path, view / entry.name)


def _open_up(link: Path) -> None:
    """Replace a link to a folder by a real folder of links to what the original holds."""
    origin = Path(os.path.realpath(link))
    link.unlink()
    link.mkdir()
    for entry in os.scandir(origin) if origin.is_dir() else ():
        os.symlink(entry.path, link / entry.name)


def _clone(target: int, source: int) -> None:
    try:
        import fcntl
    except ImportError:
        raise OSError("no reflinks here") from None
    fcntl.ioctl(target, _FICLONE, source)
