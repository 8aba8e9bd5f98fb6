import os
import sys
from pathlib import Path

import pytest

from autodetach.errors import InterpreterError
from autodetach.runner.interpreter import find_interpreter
from autodetach.runner.project import Project


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path, "train.py", tmp_path)


def environment(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").symlink_to(sys.executable)
    return folder / "bin/python"


def fake(path: Path, text: str, mode: int = 0o755) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_order(project, tmp_path) -> None:
    assert find_interpreter(None, project, {}) == Path(sys.executable)
    beside = environment(tmp_path / "venv")
    assert find_interpreter(None, project, {}) == beside
    hidden = environment(tmp_path / ".venv")
    assert find_interpreter(None, project, {}) == hidden
    active = environment(tmp_path / "active")
    assert find_interpreter(None, project, {"VIRTUAL_ENV": str(tmp_path / "active")}) == active
    assert find_interpreter(beside, project, {"VIRTUAL_ENV": str(tmp_path / "active")}) == beside
    assert find_interpreter(tmp_path / "venv", project, {}) == beside


def test_named_on_the_path(project) -> None:
    assert os.path.isabs(find_interpreter("python3", project, {}))


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        (None, 0, "no such interpreter"),
        ("#!/bin/sh\necho hello\n", 0o755, "not a Python interpreter"),
        ("#!/bin/sh\necho autodetach 3 9\n", 0o755, "Python 3.9, too old"),
        ("#!/no/such/thing\n", 0o755, "cannot be run"),
        ("", 0o644, "not an executable"),
    ],
)
def test_refused(project, tmp_path, text, mode, words) -> None:
    path = tmp_path / "python"
    if text is not None:
        fake(path, text, mode)
    with pytest.raises(InterpreterError, match=words):
        find_interpreter(path, project, {})
