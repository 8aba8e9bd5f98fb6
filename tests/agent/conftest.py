"""Speaks the agent's protocol directly: a server in this interpreter, programs in folders, what a run says."""

from __future__ import annotations

import itertools
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from autodetach.diagnosis.reader import read
from autodetach.diagnosis.recording import Recording

SERVE = Path(__file__).parents[2] / "autodetach" / "agent" / "serve.py"
Files = str | Mapping[str, str | bytes]


@dataclass(frozen=True)
class Ran:
    """How a program ended, what it printed, what the agent says of it (nothing of a plain run)."""

    status: int
    stdout: str
    stderr: str
    events: tuple[dict[str, Any], ...] = ()

    def named(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == kind]

    @property
    def recording(self) -> Recording:
        return read(self.events)

    @property
    def seen(self) -> tuple[int, str, str]:
        """What the program's user sees."""
        return self.status, self.stdout, self.stderr


class Agent:
    """One server; ``ready`` is its first word."""

    def __init__(self, folder: Path, command: list[str] | None = None, env: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._numbers = itertools.count(1)
        self.messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._ended: dict[str, int] = {}
        self.process = subprocess.Popen(
            command or [sys.executable, str(SERVE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()
        self.ready = self.message()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.messages.put(json.loads(line))
        self.messages.put(None)

    def message(self, timeout: float = 120) -> dict[str, Any]:
        """The next word of the server; fails where it has left."""
        said = self.messages.get(timeout=timeout)
        assert said is not None, "the server has left"
        return said

    def say(self, **request: Any) -> None:
        self.write(json.dumps(request).encode() + b"\n")

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def start(self, folder: Path, **request: Any) -> str:
        """Ask for a run in ``folder``; its name."""
        name = f"run-{next(self._numbers)}"
        files = {kind: str(self.folder / f"{name}.{kind}") for kind in ("events", "stdout", "stderr")}
        self.say(**{"mode": "observe", "folder": str(folder), "cwd": str(folder), **request, **files, "id": name})
        return name

    def wait(self, name: str, *, kill_on_stop: bool = False, timeout: float = 120) -> Ran:
        """The run's end; with ``kill_on_stop`` it is ended as soon as it says that its verdict is complete."""
        deadline = time.monotonic() + timeout
        asked = False
        while name not in self._ended:
            assert time.monotonic() < deadline, self.events(name)[-3:]
            try:
                said = self.message(0.05)
            except queue.Empty:
                if kill_on_stop and not asked and any(e["event"] == "stop" for e in self.events(name)):
                    asked = True
                    self.say(kill=name)
                continue
            if "ended" in said:
                self._ended[said["ended"]] = said["status"]
        out, err = ((self.folder / f"{name}.{kind}").read_bytes().decode() for kind in ("stdout", "stderr"))
        return Ran(self._ended[name], out, err, tuple(self.events(name)))

    def events(self, name: str) -> list[dict[str, Any]]:
        """What the run has said so far."""
        try:
            data = (self.folder / f"{name}.events").read_bytes()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in data.split(b"\n")[:-1]]

    def close(self) -> None:
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


def write_files(folder: Path, files: Files) -> None:
    """A single text is main.py."""
    for name, content in ({"main.py": files} if isinstance(files, str) else files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else textwrap.dedent(content).encode())


@pytest.fixture(scope="session")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """The server that all tests share, except for those that end it: importing torch takes seconds."""
    server = Agent(tmp_path_factory.mktemp("agent"), env={"PYTHONDONTWRITEBYTECODE": "1"})
    assert server.ready["ready"], server.ready
    yield server
    server.close()


@pytest.fixture
def told_server(tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    """Starts servers with a plan of their own, for a test that is about the server."""
    started: list[Agent] = []

    def call(plan: str, **env: str) -> Agent:
        started.append(Agent(tmp_path, [sys.executable, str(SERVE), plan], env))
        return started[-1]

    yield call
    for one in started:
        one.close()


@pytest.fixture
def launch(agent: Agent, tmp_path: Path) -> Callable[..., str]:
    """Starts files (by default one text, main.py) under the agent in a folder of their own; the run's name."""

    def call(
        files: Files, *argv: str, entry: str = "main.py", mode: str = "observe", folder: str = "project", **request: Any
    ) -> str:
        root = tmp_path / folder
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        write_files(root, files)
        target = {} if "module" in request else {"entry": entry}
        cwd = os.path.normpath(root / request.pop("cwd", "."))
        return agent.start(root, mode=mode, argv=list(argv), cwd=cwd, **target, **request)

    return call


@pytest.fixture
def run(agent: Agent, launch: Callable[..., str]) -> Callable[..., Ran]:
    """Runs files under the agent to their end."""

    def call(files: Files, *argv: str, kill_on_stop: bool = False, **how: Any) -> Ran:
        return agent.wait(launch(files, *argv, **how), kill_on_stop=kill_on_stop)

    return call


@pytest.fixture
def both(agent: Agent, launch: Callable[..., str], tmp_path: Path) -> Callable[..., tuple[Ran, Ran]]:
    """The same program under ``python`` and under the agent, in the same folder at the same time."""

    def call(files: Files, *argv: str, entry: str = "main.py", **how: Any) -> tuple[Ran, Ran]:
        name = launch(files, *argv, entry=entry, **how)
        root = tmp_path / str(how.get("folder", "project"))
        cwd = root / how.get("cwd", ".")
        target = ["-m", how["module"]] if "module" in how else [os.path.relpath(root / entry, cwd)]
        done = subprocess.run(
            [sys.executable, *target, *argv],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            timeout=120,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode()), agent.wait(name)

    return call
