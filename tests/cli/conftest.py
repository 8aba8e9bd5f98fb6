"""A command line whose pipeline answers what a test tells it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from autodetach import cli
from autodetach.model import Outcome
from autodetach.settings import Settings

sys.path.insert(0, str(Path(__file__).parent.parent / "report"))


@dataclass
class Pipeline:
    """Stands in for autodetach.pipeline: returns ``answer`` or raises it, and keeps what it was asked."""

    answer: Outcome | BaseException | None = None
    settings: list[Settings] = field(default_factory=list)
    patches: list[str] = field(default_factory=list)

    def __call__(self, settings: Settings, *rest: Any) -> Outcome:
        self.settings.append(settings)
        self.patches += [one for one in rest if isinstance(one, str)]
        rest[-1].stage("running")
        if isinstance(self.answer, BaseException):
            raise self.answer
        assert self.answer is not None
        return self.answer


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    fake = Pipeline()
    module = ModuleType("autodetach.pipeline")
    for command in ("fix", "explain", "verify"):
        setattr(module, command, fake)
    monkeypatch.setitem(sys.modules, "autodetach.pipeline", module)
    monkeypatch.setattr("autodetach.pipeline", module, raising=False)
    return fake


@dataclass(frozen=True)
class Result:
    status: int
    stdout: str
    stderr: str


@pytest.fixture
def run(
    capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Runs the command line in a folder that holds train.py."""
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    from samples import BEFORE

    (tmp_path / "train.py").write_text(BEFORE, encoding="utf-8")

    def call(*arguments: str) -> Result:
        capfdbinary.readouterr()
        status = cli.run(arguments)
        out, err = capfdbinary.readouterr()
        return Result(status, out.decode(), err.decode())

    return call
