"""The folder of one session: private, removed in the end, swept by the next session if that failed."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import tempfile
import weakref
from pathlib import Path

from autodetach.errors import RunError
from autodetach.runner.removal import remove_tree

_PREFIX = f"autodetach-{os.getuid()}-"
_LOCK = "lock"
_live: weakref.WeakSet[Scratch] = weakref.WeakSet()


class Scratch:
    """``runs`` (one scratch a run), ``wire`` (events and output), ``temp``, ``caches``: what runs may write;
    ``base``: the project as it was when the session began; ``lock``: held as long as we live."""

    def __init__(self, parent: Path | None = None) -> None:
        """Raises RunError if there is no place to write to."""
        place = Path(os.path.realpath(parent or tempfile.gettempdir()))
        try:
            self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
            self._lock = _locked(self.folder)
            for name in ("runs", "wire", "temp", "caches", "base"):
                (self.folder / name).mkdir(mode=0o700)
        except OSError as error:
            raise RunError(
                f"no room for a scratch copy in {place}: {error.strerror}; set TMPDIR to a place with room"
            ) from None
        self._owner = os.getpid()
        _live.add(self)
        sweep(place)

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def wire(self) -> Path:
        return self.folder / "wire"

    @property
    def temp(self) -> Path:
        return self.folder / "temp"

    @property
    def caches(self) -> Path:
        return self.folder / "caches"

    @property
    def base(self) -> Path:
        return self.folder / "base"

    def remove(self) -> None:
        """Remove everything. Does nothing the second time, or in a forked child."""
        if self._lock < 0 or os.getpid() != self._owner:
            return
        lock, self._lock = self._lock, -1
        _live.discard(self)
        remove_tree(self.folder)
        os.close(lock)


def sweep(place: Path) -> None:
    """Remove the folders of our own earlier sessions whose owner is gone."""
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        left = [Path(entry.path) for entry in entries if entry.name.startswith(_PREFIX) and _ours(entry)]
    for folder in left:
        with contextlib.suppress(OSError):
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # An empty lock belongs to a session that is just being made.
                if os.fstat(lock).st_size:
                    remove_tree(folder)
            finally:
                os.close(lock)


def _ours(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.getuid()


def _locked(folder: Path) -> int:
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(lock, f"{os.getpid()}\n".encode())
    return lock


@atexit.register
def _remove_what_is_left() -> None:
    for scratch in list(_live):
        scratch.remove()
