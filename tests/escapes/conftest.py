"""A made-up home with keys in it, a project, a place elsewhere; and every mechanism that this machine has."""

import os
import shutil
import sys
import tempfile
import uuid
from pathlib import Path

import pytest

from autodetach.isolation.choose import known
from autodetach.isolation.interface import Mechanism
from autodetach.isolation.none import Unconfined
from autodetach.runner.limits import Limits
from autodetach.runner.project import Project
from autodetach.runner.session import Session

sys.path.insert(0, str(Path(__file__).parent))  # test_killed is a script, too, and others ask it who still runs

STUB = Path(__file__).resolve().parent.parent / "runner" / "stub_server.py"
PRELUDE = """
import os, sys, time, socket, signal, subprocess, pathlib
def attempt(name, action):
    try:
        value = action()
        say({"event": name, "worked": True, "value": repr(value)[:200]})
    except BaseException as error:
        say({"event": name, "worked": False, "value": repr(error)[:200]})
"""


class Room:
    def __init__(self, home: Path, mechanism: Mechanism, mark: str) -> None:
        self.home, self.mechanism, self.mark = home, mechanism, mark
        self.project_folder = home / "project"
        self.elsewhere = home / "elsewhere"

    def session(self, *, limits: Limits | None = None, **options) -> Session:
        project = Project.discover(self.project_folder / "train.py", None, self.project_folder)
        return Session(
            Path(sys.executable), project, isolation=self.mechanism.name, limits=limits, serve=STUB, **options
        )

    def run(self, program: str, *, timeout: float = 20, limits: Limits | None = None, **options):
        with self.session(limits=limits, **options) as session:
            return session.run({"program": PRELUDE + program}, timeout=timeout)

    def attempts(self, program: str, **options) -> dict[str, bool]:
        result = self.run(program, **options)
        assert result.ended == "exit", (result.ended, result.stderr)
        assert result.status == 0, result.stderr
        return {event["event"]: event["worked"] for event in result.events}

    def enforces(self, guarantee: str) -> bool:
        return guarantee in self.mechanism.enforces

    def survivors(self) -> list[int]:
        """Processes that carry this test's mark, zombies aside."""
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                try:
                    if self.mark.encode() in Path(f"/proc/{name}/environ").read_bytes():
                        found.append(int(name))
                except OSError:
                    pass
        return found


@pytest.fixture(params=["bubblewrap", "landlock", "none"])
def room(request, monkeypatch, tmp_path):
    mechanism = next((one for one in (*known(), Unconfined()) if one.name == request.param), None)
    if mechanism is None:
        pytest.skip(f"{request.param} is not for this system")
    if reason := mechanism.probe():
        pytest.skip(f"{request.param} does not work here: {reason}")
    home = Path(tempfile.mkdtemp(prefix="autodetach-escapes-", dir=Path.home()))
    mark = f"ESCAPES_{uuid.uuid4().hex}"
    monkeypatch.setenv("HOME", str(home))
    # Of its own, because others on this machine may be at work in the common one.
    temp = tmp_path / "temp"
    temp.mkdir()
    monkeypatch.setenv("TMPDIR", str(temp))
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    monkeypatch.setenv("ESCAPES_MARK", mark)
    for name, text in {
        "project/pyproject.toml": "",
        "project/train.py": "print('train')\n",
        "project/.git/config": "[core]\n",
        "project/pkg/__init__.py": "",
        "elsewhere/precious.txt": "precious\n",
        ".ssh/id_ed25519": "PRIVATE KEY\n",
        ".netrc": "machine x password y\n",
        ".aws/credentials": "aws\n",
        ".config/gcloud/key.json": "gcloud\n",
        ".config/other/settings.ini": "harmless\n",
    }.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    room = Room(home, mechanism, mark)
    yield room
    shutil.rmtree(home)
    assert room.survivors() == []
    assert list(temp.iterdir()) == [], "a scratch folder was left behind"
