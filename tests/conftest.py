"""Analyses of real programs without a new interpreter for each: importing torch takes seconds."""

from __future__ import annotations

import importlib
import itertools
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from autodetach.model import Outcome
from autodetach.progress import Silent
from autodetach.runner.limits import Limits
from autodetach.runner.project import Project
from autodetach.runner.session import Session
from autodetach.runner.workspace import Workspace
from autodetach.settings import Settings
from autodetach.source.diff import unified_diff

CORPUS = Path(__file__).parents[1] / "corpus"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("cuda")]
    if marked and not importlib.import_module("torch").cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no CUDA device here"))


class OneServer:
    """Stands in for the class of sessions: whoever opens one gets the same server and a workspace of his own."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._numbers = itertools.count(1)

    def __call__(self, interpreter: Path, project: Project, **options: Any) -> _Borrowed:
        if self._session is None:
            self._session = Session(interpreter, project, isolation="none")
            self._session.__enter__()
        folder = self._session._scratch.folder / f"workspace-{next(self._numbers)}"
        folder.mkdir()
        self._session._project = project
        self._session._workspace = Workspace(project, folder)
        self._session._restarts = 0
        self._session._limits = self._session._monitor._limits = options.get("limits") or Limits()
        return _Borrowed(self._session)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()


class _Borrowed:
    """A session that is not closed by those who use it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> _Borrowed:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


@pytest.fixture(scope="session")
def one_server() -> Iterator[OneServer]:
    server = OneServer()
    yield server
    server.close()


@pytest.fixture
def shared(one_server: OneServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on the pipeline's sessions share one server."""
    monkeypatch.setattr("autodetach.pipeline.Session", one_server)


def write_project(folder: Path, files: str | Mapping[str, str | bytes]) -> Path:
    """Write files (a single text is train.py) below ``folder``."""
    for name, content in ({"train.py": files} if isinstance(files, str) else files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else textwrap.dedent(content).encode())
    return folder


@pytest.fixture
def analyse(shared: None, tmp_path: Path) -> Callable[..., Outcome]:
    """``autodetach fix`` (or another command) on files, as a call: its outcome."""

    def call(
        files: str | Mapping[str, str | bytes],
        *args: str,
        entry: str = "train.py",
        command: str = "fix",
        patch: str | None = None,
        **settings: Any,
    ) -> Outcome:
        from autodetach import pipeline

        folder = tmp_path / "project"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write_project(folder, files)
        script = {} if "module" in settings else {"script": folder / entry}
        given = Settings(cwd=folder, args=args, **script, **settings)
        if patch is not None:
            return pipeline.verify(given, patch, Silent())
        outcome: Outcome = getattr(pipeline, command)(given, Silent())
        return outcome

    return call


@dataclass(frozen=True)
class Said:
    """What a user of the command line sees."""

    status: int
    stdout: str
    stderr: str


@pytest.fixture
def command(
    shared: None, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Said]:
    """The command line in this process, in a folder; its interpreter is shared with all other tests."""

    def call(folder: Path, *arguments: str) -> Said:
        from autodetach import cli

        for variable in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.chdir(folder)
        capfdbinary.readouterr()
        status = cli.run(arguments)
        out, err = capfdbinary.readouterr()
        return Said(status, out.decode("utf-8", "surrogateescape"), err.decode())

    return call


@pytest.fixture
def in_a_process() -> Callable[..., Said]:
    """The command line as its user starts it."""

    def call(folder: Path, *arguments: str, **options: Any) -> Said:
        done = subprocess.run(
            [sys.executable, "-m", "autodetach", *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=300,
            **options,
        )
        return Said(done.returncode, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode())

    return call


@dataclass(frozen=True)
class Case:
    """A case of the corpus: its folders by name, each as its files."""

    folder: Path
    entry: str
    args: tuple[str, ...]

    @property
    def before(self) -> dict[str, bytes]:
        return self.files("before")

    def files(self, name: str) -> dict[str, bytes]:
        top = self.folder / name
        return {p.relative_to(top).as_posix(): p.read_bytes() for p in sorted(top.rglob("*")) if p.is_file()}

    def diff(self, name: str) -> str:
        """What ``before/`` becomes in the folder of that name, as a unified diff."""
        return unified_diff(self.before, self.files(name))

    @property
    def wrongs(self) -> list[str]:
        return sorted(p.name for p in self.folder.iterdir() if p.name.startswith("wrong-"))


@pytest.fixture
def case() -> Callable[[str], Case]:
    """A case of the corpus by its slug."""

    def find(slug: str) -> Case:
        folder = next(p for p in (CORPUS / "cases" / slug, CORPUS / "own" / slug) if p.is_dir())
        said = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))
        return Case(folder, said["entry"], tuple(said.get("args", ())))

    return find
