"""Machines that lack something: room, /proc, /dev/shm, a place to write; a terminal that is interrupted; a crowd."""

from __future__ import annotations

import os
import pty
import resource
import select
import signal
import subprocess
import sys
import termios
import time
import uuid

import pytest
from test_killed import marked, nothing_runs

BROKEN = """\
import torch

cell = torch.nn.GRUCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
h = torch.zeros(1, 3)
for _ in range(20):
    h = cell(torch.ones(1, 2), h)
    opt.zero_grad()
    h.pow(2).sum().backward()
    opt.step()
"""
REPAIRED = "cell(torch.ones(1, 2), h.detach())"
FIX = [sys.executable, "-m", "autodetach", "fix", "t.py"]


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "t.py").write_text(BROKEN)
    return folder


@pytest.fixture
def temp(tmp_path):
    place = tmp_path / "temp"
    place.mkdir()
    return place


@pytest.fixture
def call(project, temp):
    """``autodetach fix`` after a shell command that takes something away, in name spaces of its own."""

    def run(setup="", command=FIX, **options):
        if setup:
            quoted = " ".join(f"'{word}'" for word in command)
            command = ["unshare", "-rm", "sh", "-c", f"{setup} && {quoted}; status=$?; ls -A {temp} >&2; exit $status"]
            try:
                tried = subprocess.run(["unshare", "-rm", "sh", "-c", setup], capture_output=True)
            except OSError:
                pytest.skip("no unshare on this machine")
            if tried.returncode:
                pytest.skip(f"not possible here: {tried.stderr.decode().strip()}")
        environ = {**os.environ, "TMPDIR": str(temp), **options.pop("env", {})}
        return subprocess.run(
            command, cwd=project, env=environ, capture_output=True, text=True, stdin=subprocess.DEVNULL, **options
        )

    return run


def one_line(said, words):
    assert said.stderr.count("\n") == 1 and said.stderr.startswith("autodetach: error["), said.stderr
    assert all(word in said.stderr for word in words)


SMALL = "mount -t tmpfs -o size=1m none {}"


def test_no_room_for_the_copy(call, project, temp):
    (project / "data.csv").write_bytes(os.urandom(3 << 20))
    said = call(SMALL.format(temp))
    assert (said.returncode, said.stdout) == (3, "")
    one_line(said, ["scratch copy", "No space left on device", "set TMPDIR to a place with room"])
    assert (project / "t.py").read_text() == BROKEN


def test_a_program_that_fills_the_disk(call, project, temp):
    filler = "with open('junk', 'wb', buffering=0) as file:\n    while True:\n        file.write(b'x' * 4096)\n"
    (project / "t.py").write_text("import torch\n" + filler)
    said = call(SMALL.format(temp))
    assert (said.returncode, said.stdout) == (3, "")
    assert "filled the disk that its scratch copy is on; set TMPDIR to a place with room" in said.stderr
    assert [p.name for p in project.iterdir()] == ["t.py"]


def test_a_file_may_not_grow(call, project):
    """Where nothing can be mounted: what a full disk does to a single file."""
    (project / "data.csv").write_bytes(os.urandom(3 << 20))
    said = call(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
    assert (said.returncode, said.stdout) == (3, "")
    one_line(said, ["scratch copy", "File too large"])


APPLY = """
import sys
from pathlib import Path
from autodetach.errors import RefusedError
from autodetach.source.write import write_files
root = Path(sys.argv[1])
old = {f"{n}.py": b"old\\n" * 1000 for n in range(4)}
for name, data in old.items():
    (root / name).write_bytes(data)
filler = open(root / "filler", "wb", buffering=0)
for size in (65536, 4096):
    try:
        while len(sys.argv) < 3 or filler.tell() < int(sys.argv[2]): filler.write(b"x" * size)
    except OSError:
        pass
try:
    write_files(root, {name: b"new\\n" * 40000 for name in old}, old)
    print("written")
except RefusedError as error:
    print(error)
print(all((root / name).read_bytes() == data for name, data in old.items()), len(list(root.iterdir())))
"""


@pytest.mark.parametrize("filled", [[], ["700000"]], ids=["at once", "half way"])
def test_no_room_to_apply(call, temp, filled):
    said = call(SMALL.format(temp), [sys.executable, "-c", APPLY, str(temp), *filled])
    assert said.returncode == 0, said.stderr
    message, state = said.stdout.splitlines()
    assert "cannot be written: No space left on device; nothing was written" in message
    assert state == "True 5"


def test_a_temp_folder_that_cannot_be_written_is_passed_over(call):
    said = call(env={"TMPDIR": "/proc"})
    assert said.returncode == 0 and REPAIRED in said.stdout, said.stderr


@pytest.mark.parametrize("place", ["none /proc", "-o ro none /dev/shm", "-o ro none /var/tmp"])
def test_without(call, place):
    said = call(f"mount -t tmpfs {place}")
    assert said.returncode == 0, said.stderr
    assert REPAIRED in said.stdout


@pytest.mark.parametrize("moment", [0.3, 1.5, 4.0])
def test_control_c_at_a_terminal(project, temp, moment):
    (project / "t.py").write_text("import time, torch\ntime.sleep(60)\n")
    mark = uuid.uuid4().hex
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(project)
        os.environ.update(TMPDIR=str(temp), PLACES_MARK=mark, TERM="xterm")
        os.execv(FIX[0], FIX)
    before = termios.tcgetattr(terminal)
    said, deadline = b"", time.monotonic() + moment
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.05)[0]:
            said += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:
            break
        if not chunk:
            break
        said += chunk
        after = termios.tcgetattr(terminal)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    assert status in (130, -signal.SIGINT), said
    assert after == before
    text = said.decode().replace("\r\n", "\n").split("\r\x1b[2K")[-1]
    assert "Traceback" not in said.decode() and "\x1b[?25l" not in text  # the cursor is there, the line is wiped
    assert nothing_runs(mark) and list(temp.iterdir()) == []


def side_by_side(project, temp, count):
    mark = uuid.uuid4().hex
    calls = [
        subprocess.Popen(
            FIX,
            cwd=project,
            env={**os.environ, "TMPDIR": str(temp), "PLACES_MARK": mark},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    said = [one.communicate()[0] for one in calls]
    assert [one.returncode for one in calls] == [0] * count
    assert len(set(said)) == 1 and REPAIRED in said[0]
    assert marked(mark) == [] and list(temp.iterdir()) == []
    assert (project / "t.py").read_text() == BROKEN


def test_two_side_by_side_in_one_project(project, temp):
    side_by_side(project, temp, 2)


@pytest.mark.nightly
def test_ten_side_by_side_in_one_project(project, temp):
    side_by_side(project, temp, 10)
