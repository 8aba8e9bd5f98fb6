"""Writing patched files back: all of them or none, and only over what was analysed.

A list says which new files are going to be made; every new content is written beside its file; the list becomes the
journal, which says that all of them are complete; they are renamed into place; the journal goes. A crash before the
journal leaves the old files, one after it is made good by the next call, and nothing else is left by either.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autodetach.errors import RefusedError

JOURNAL = ".autodetach-journal"
LIST = ".autodetach-list"
_PREFIX = ".autodetach-"


@dataclass(frozen=True)
class _Step:
    """One file to be replaced: its name under the root, the real file, and the new content beside it."""

    name: str
    real: Path
    new: Path
    digest: str
    """Of the content that is replaced."""


def write_files(root: Path, new: Mapping[str, bytes], expected: Mapping[str, bytes]) -> tuple[str, ...]:
    """Replace each file by its new bytes, if all still have the expected ones; returns warnings.

    Mode, owner and extended attributes are kept where the system allows; a symbolic link stays one and the
    file it points to is replaced. Raises ``RefusedError`` where a file has changed, is no regular file, or
    may not be written; then none is.
    """
    with _alone(root):
        _recover(root)
        real = {name: _checked(root, name, expected.get(name)) for name in sorted(new)}
        changing = [name for name in real if new[name] != expected[name]]
        if len({real[name] for name in changing}) < len(changing):
            raise RefusedError(f"two names lead to the same file: {', '.join(changing)}")
        warnings = [
            f"{name} has other hard links: they keep the old content"
            for name in changing
            if real[name].stat().st_nlink > 1
        ]
        _replace(root, {name: real[name] for name in changing}, new, expected)
    return tuple(warnings)


def recover(root: Path) -> tuple[str, ...]:
    """Finish what a crash interrupted; the names of the files written. Raises ``RefusedError`` where a file has been
    changed since."""
    with _alone(root):
        return _recover(root)


def is_interrupted(root: Path) -> bool:
    """Whether a crash has left some files old and some new."""
    return (root / JOURNAL).exists()


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """One writer in a project at a time; where the system cannot lock a folder there may be several."""
    folder = -1
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        folder = os.open(root, os.O_RDONLY)
        fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if folder >= 0:
            os.close(folder)


def _recover(root: Path) -> tuple[str, ...]:
    journal = root / JOURNAL
    try:
        entries = json.loads(journal.read_bytes())
        steps = [_Step(e["name"], _real(root, e["name"]), Path(e["new"]), e["digest"]) for e in entries if e["digest"]]
        dropped = [e for e in entries if not e["digest"]]
    except FileNotFoundError:
        _clear(root)
        return ()
    except (ValueError, KeyError, TypeError) as error:
        raise RefusedError(f"{journal} cannot be read ({error}); look at it, then delete it") from None
    waiting = [step for step in steps if step.new.exists()]
    for step in waiting:
        beside = step.new.parent == step.real.parent and step.new.name.startswith(_PREFIX)
        if not beside or not step.real.is_file() or _digest(step.real.read_bytes()) != step.digest:
            raise RefusedError(
                f"an interrupted --apply left {step.name} unwritten and it has changed since; "
                f"its new content is {step.new}: settle it by hand, then delete {journal}"
            )
    for step in waiting:
        os.replace(step.new, step.real)
        _sync_folder(step.real.parent)
    _drop(root, dropped)
    journal.unlink()
    _clear(root)
    return tuple(step.name for step in waiting)


def _clear(root: Path) -> None:
    """Remove what was listed and never became complete."""
    listed = root / LIST
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        _drop(root, json.loads(listed.read_bytes()))
    # A list that cannot be read was never finished, and nothing was made by it.
    with contextlib.suppress(OSError):
        listed.unlink(missing_ok=True)


def _drop(root: Path, entries: Sequence[Mapping[str, str]]) -> None:
    for entry in entries:
        path = Path(entry["new"])
        if path.parent == _real(root, entry["name"]).parent and path.name.startswith(_PREFIX):
            path.unlink(missing_ok=True)


def _real(root: Path, name: str) -> Path:
    return (root / name).resolve()


def _checked(root: Path, name: str, expected: bytes | None) -> Path:
    real = _real(root, name)
    try:
        regular = stat.S_ISREG(real.stat().st_mode)
        present = real.read_bytes() if regular else b""
    except OSError as error:
        raise RefusedError(f"{name} cannot be read: {error.strerror}") from None
    if not regular:
        raise RefusedError(f"{name} is no regular file")
    if expected is None or present != expected:
        raise RefusedError(f"{name} has changed since it was analysed; nothing was written")
    if not os.access(real, os.W_OK):
        raise RefusedError(f"{name} is read-only; nothing was written")
    return real


def _write_beside(step: _Step, data: bytes) -> None:
    """The new content, on disk, in the folder of its file and with its mode, owner and attributes."""
    try:
        descriptor = os.open(step.new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise RefusedError(
            f"{step.name}: its folder cannot be written: {error.strerror}; nothing was written"
        ) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            _take_after(step.real, step.new, file.fileno())
            os.fsync(file.fileno())
    except OSError as error:
        raise RefusedError(f"{step.name} cannot be written: {error.strerror}; nothing was written") from None


def _take_after(real: Path, beside: Path, descriptor: int) -> None:
    """Give the new file the owner, attributes and mode of the old one, as far as the system lets us."""
    old = real.stat()
    if hasattr(os, "fchown"):
        with contextlib.suppress(OSError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for attribute in os.listxattr(real):
                os.setxattr(beside, attribute, os.getxattr(real, attribute))
    # After the owner: a change of owner may clear bits of the mode.
    os.chmod(beside, stat.S_IMODE(old.st_mode))


def _replace(root: Path, real: Mapping[str, Path], new: Mapping[str, bytes], expected: Mapping[str, bytes]) -> None:
    done: list[_Step] = []
    try:
        steps = _prepared(root, real, new, expected)
        for step in steps:
            if step.real.read_bytes() != expected[step.name]:
                raise RefusedError(f"{step.name} has changed since it was analysed; nothing was written")
            os.replace(step.new, step.real)
            done.append(step)
            _sync_folder(step.real.parent)
        (root / JOURNAL).unlink(missing_ok=True)
    except BaseException as error:
        _put_back(root, done, new, expected)
        if isinstance(error, OSError):
            raise RefusedError(f"cannot write: {error}; nothing was written") from None
        raise


def _prepared(
    root: Path,
    real: Mapping[str, Path],
    new: Mapping[str, bytes],
    old: Mapping[str, bytes],
    dropped: Sequence[Mapping[str, str]] = (),
) -> Sequence[_Step]:
    """All new contents, complete on disk, and the journal that says so; ``dropped`` are entries of an earlier one."""
    steps = [
        _Step(name, path, path.parent / f"{_PREFIX}{path.name[:100]}-{secrets.token_hex(4)}", _digest(old[name]))
        for name, path in real.items()
    ]
    entries = [{"name": step.name, "new": str(step.new), "digest": step.digest} for step in steps]
    try:
        with open(root / LIST, "w", encoding="utf-8") as file:
            json.dump([*entries, *({**entry, "digest": ""} for entry in dropped)], file)
            file.flush()
            os.fsync(file.fileno())
        _sync_folder(root)
    except OSError as error:
        raise RefusedError(f"{root} cannot be written: {error.strerror}; nothing was written") from None
    for step in steps:
        _write_beside(step, new[step.name])
    os.replace(root / LIST, root / JOURNAL)
    _sync_folder(root)
    return steps


def _put_back(root: Path, done: Sequence[_Step], new: Mapping[str, bytes], old: Mapping[str, bytes]) -> None:
    """After a failure: the old contents of what was replaced, by the same way, so that a crash now does no harm."""
    waiting = _waiting(root)
    if done:
        back = _prepared(root, {step.name: step.real for step in done}, old, new, waiting)
        for step in back:
            os.replace(step.new, step.real)
            _sync_folder(step.real.parent)
    _drop(root, waiting)
    (root / JOURNAL).unlink(missing_ok=True)
    _clear(root)


def _waiting(root: Path) -> list[dict[str, str]]:
    """What the journal names that has not been renamed yet."""
    with contextlib.suppress(OSError, ValueError):
        return [entry for entry in json.loads((root / JOURNAL).read_bytes()) if os.path.exists(entry["new"])]
    return []


def _sync_folder(folder: Path) -> None:
    """Make renames in a folder last; some systems cannot open folders, and do not need it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
