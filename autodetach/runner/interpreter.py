"""Which Python runs the user's program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from autodetach.errors import InterpreterError
from autodetach.runner.project import Project

OLDEST = (3, 11)
_ASK = "import sys; print('autodetach', *sys.version_info[:2])"


def find_interpreter(explicit: Path | str | None, project: Project, env: Mapping[str, str] = os.environ) -> Path:
    """The interpreter: ``--python``, the active environment, ``.venv``/``venv`` beside the project, our own.

    The path is not resolved: a virtual environment's ``python`` is a link whose own place matters.
    Raises InterpreterError if what was named is no Python of at least version 3.11.
    """
    if explicit is not None:
        return _checked(_spelled(str(explicit)), "--python")
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if env.get(variable) and (found := _python_in(Path(env[variable]))):
            return _checked(found, variable)
    for folder in dict.fromkeys((project.root, project.cwd)):
        for name in (".venv", "venv"):
            if found := _python_in(folder / name):
                return _checked(found, str(folder / name))
    return Path(sys.executable)


def _python_in(prefix: Path) -> Path | None:
    for name in ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe"):
        if (prefix / name).is_file():
            return prefix / name
    return None


def _spelled(given: str) -> Path:
    path = Path(given).expanduser()
    if path.is_dir():
        return _python_in(path) or path
    if os.sep not in given and not path.exists():
        found = shutil.which(given)
        if found:
            return Path(found)
    return path if path.is_absolute() else Path.cwd() / path


def _checked(path: Path, origin: str) -> Path:
    if not path.exists():
        raise InterpreterError(f"no such interpreter: {path} (from {origin})")
    if path.is_dir() or not os.access(path, os.X_OK):
        raise InterpreterError(f"{path} (from {origin}) is not an executable Python")
    try:
        answer = subprocess.run(
            [path, "-I", "-S", "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        ).stdout.split()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InterpreterError(f"{path} (from {origin}) cannot be run: {error}") from None
    if len(answer) != 3 or answer[0] != "autodetach" or not (answer[1] + answer[2]).isdigit():
        raise InterpreterError(f"{path} (from {origin}) is not a Python interpreter")
    if (int(answer[1]), int(answer[2])) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise InterpreterError(
            f"{path} (from {origin}) is Python {answer[1]}.{answer[2]}, too old: {wanted} or later is needed"
        )
    return path
