"""Writing patched files back: all of them or none, and only over what was analysed.

Every new content is first written beside its file; then a journal says that all of them are complete; then
they are renamed into place; then the journal goes. A crash before the journal leaves the old files, one after
it is made good by the next call.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autodetach.errors import RefusedError

JOURNAL = ".autodetach-journal"
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
    recover(root)
    real = {name: _checked(root, name, expected.get(name)) for name in sorted(new)}
    changing = [name for name in real if new[name] != expected[name]]
    if len({real[name] for name in changing}) < len(changing):
        raise RefusedError(f"two names lead to the same file: {', '.join(changing)}")
    warnings = [
        f"{name} has other hard links: they keep the old content" for name in changing if real[name].stat().st_nlink > 1
    ]
    steps: list[_Step] = []
    try:
        for name in changing:
            beside = _written_beside(name, real[name], new[name])
            steps.append(_Step(name, real[name], beside, _digest(expected[name])))
        _replace(root, steps, expected)
    finally:
        if not (root / JOURNAL).exists():
            for step in steps:
                step.new.unlink(missing_ok=True)
    return tuple(warnings)


def recover(root: Path) -> None:
    """Finish what a crash interrupted. Raises ``RefusedError`` where a file has been changed since."""
    journal = root / JOURNAL
    try:
        entries = json.loads(journal.read_bytes())
        steps = [_Step(e["name"], _real(root, e["name"]), Path(e["new"]), e["digest"]) for e in entries]
    except FileNotFoundError:
        return
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
    journal.unlink()


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


def _written_beside(name: str, real: Path, data: bytes) -> Path:
    """The new content, on disk, in the folder of its file and with its mode, owner and attributes."""
    try:
        descriptor, path = tempfile.mkstemp(prefix=f"{_PREFIX}{real.name[:100]}-", dir=real.parent)
    except OSError as error:
        raise RefusedError(f"{name}: its folder cannot be written: {error.strerror}; nothing was written") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            _take_after(real, Path(path), file.fileno())
            os.fsync(file.fileno())
    except OSError as error:
        Path(path).unlink(missing_ok=True)
        raise RefusedError(f"{name} cannot be written: {error.strerror}; nothing was written") from None
    return Path(path)


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


def _replace(root: Path, steps: list[_Step], expected: Mapping[str, bytes]) -> None:
    if len(steps) > 1:
        _write_journal(root, steps)
    done: list[_Step] = []
    try:
        for step in steps:
            if step.real.read_bytes() != expected[step.name]:
                raise RefusedError(f"{step.name} has changed since it was analysed; nothing was written")
            os.replace(step.new, step.real)
            done.append(step)
            _sync_folder(step.real.parent)
    except BaseException as error:
        for step in done:
            os.replace(_written_beside(step.name, step.real, expected[step.name]), step.real)
        (root / JOURNAL).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise RefusedError(f"cannot write: {error}; nothing was written") from None
        raise
    (root / JOURNAL).unlink(missing_ok=True)


def _write_journal(root: Path, steps: list[_Step]) -> None:
    entries = [{"name": step.name, "new": str(step.new), "digest": step.digest} for step in steps]
    try:
        descriptor, path = tempfile.mkstemp(prefix=f"{_PREFIX}journal-", dir=root)
        with os.fdopen(descriptor, "w") as file:
            json.dump(entries, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path, root / JOURNAL)
    except OSError as error:
        raise RefusedError(f"{root} cannot be written: {error.strerror}; nothing was written") from None
    _sync_folder(root)


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
