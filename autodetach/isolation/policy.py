"""The rights of a run on this machine: what it may write, what it must read, what it shall not see."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from autodetach.isolation.interface import Policy
from autodetach.isolation.secrets import hidden_places

if TYPE_CHECKING:
    from autodetach.runner.project import Project
    from autodetach.runner.scratch import Scratch

_MOST_PARTS = 500
_ASK_PREFIXES = """
import os, sys
print("\\0".join({sys.prefix, sys.base_prefix, os.path.realpath(sys.executable), *sys.path}))
"""


def policy_for(
    project: Project,
    interpreter: Path,
    scratch: Scratch,
    network: bool,
    shared_memory: int | None,
    data: Iterable[Path] = (),
    accelerators: bool = True,
) -> Policy:
    """Writable is the scratch alone; readable is all but the usual secrets, and ``data`` in any case."""
    package = Path(__file__).resolve().parent.parent
    readable = [*_parts(project.root), package, *_prefixes(interpreter)]
    if not project.cwd_inside:
        readable += _parts(project.cwd)
    named = [path.resolve() for path in data]
    readable += named
    readable = [path for path in readable if path != Path("/") and path.exists()]
    return Policy(
        writable=(scratch.runs, scratch.wire, scratch.temp, scratch.caches),
        temp=scratch.temp,
        readable=tuple(dict.fromkeys(readable)),
        hidden=tuple(path for path in hidden_places() if path not in named),
        network=network,
        accelerators=accelerators,
        shared_memory=shared_memory or 0,
    )


def _parts(folder: Path) -> list[Path]:
    """A folder; of the temp folder only the files and folders in it, because sockets of the machine are there
    too.
    """
    if str(folder) not in (os.path.realpath(tempfile.gettempdir()), "/tmp", "/var/tmp"):
        return [folder]
    with os.scandir(folder) as entries:
        wanted = [
            Path(entry.path)
            for entry in entries
            if not entry.name.startswith((".", "autodetach-"))
            and (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False))
        ]
    return wanted[:_MOST_PARTS]


@lru_cache
def _prefixes(interpreter: Path) -> tuple[Path, ...]:
    """Where an interpreter and what it imports live; asked of itself, because environments chain."""
    try:
        said = subprocess.run(
            [interpreter, "-c", _ASK_PREFIXES],
            capture_output=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd="/",
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        said = b""
    named = [os.fsdecode(part) for part in said.strip().split(b"\0") if part]
    near = [str(interpreter.parent.parent), *named]
    return tuple(_outermost(Path(os.path.realpath(path)) for path in near if os.path.isabs(path)))


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """Without what lies below another of them, and without whole system roots."""
    unique = sorted({path for path in paths if path not in (Path("/"), Path("/usr")) and path.exists()})
    return [path for path in unique if not any(other in path.parents for other in unique)]
