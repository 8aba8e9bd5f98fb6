"""The server's protocol, spoken directly: one server for all tests here, and it is ended by the last."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

SERVE = Path(__file__).parents[2] / "autodetach" / "agent" / "serve.py"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A project whose package is installed, editable, in the server's interpreter."""
    folder = tmp_path_factory.mktemp("original")
    (folder / "src" / "pack").mkdir(parents=True)
    return folder


@pytest.fixture(scope="module")
def server(agent, original, tmp_path_factory):
    own = type(agent)(tmp_path_factory.mktemp("server"), env={"PYTHONPATH": str(original / "src")})
    yield own
    own.close()


@pytest.fixture
def project(tmp_path):
    def make(text):
        (tmp_path / "main.py").write_text(text)
        return tmp_path

    return make


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def eventually(condition, seconds=20):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)
    return True


def test_the_first_word(server):
    import torch

    assert server.ready == {
        "ready": True,
        "python": ".".join(map(str, sys.version_info[:3])),
        "torch": torch.__version__,
        "cuda": server.ready["cuda"],
    }


def test_runs_side_by_side(server, project):
    """Each waits for the other two."""
    source = (
        "import pathlib, sys, time\nme = sys.argv[1]\npathlib.Path('here-' + me).touch()\n"
        "while len(list(pathlib.Path('.').glob('here-*'))) < 3:\n    time.sleep(0.02)\n"
        "import torch\nprint(me, torch.rand(1).item())\nsys.exit(int(me))\n"
    )
    folder = project(source)
    names = [server.start(folder, entry="main.py", argv=[str(n)]) for n in range(3)]
    ends = [server.wait(name) for name in names]
    assert [end.status for end in ends] == [0, 1, 2]
    assert [end.stdout.split()[0] for end in ends] == ["0", "1", "2"]
    assert len({end.stdout.split()[1] for end in ends}) == 1  # seeded alike


def test_the_process_number_that_is_told_is_the_programs(server, project):
    name = server.start(project("import os; print(os.getpid())"), entry="main.py")
    told = server.message()
    assert told.pop("started") == name
    assert server.wait(name).stdout == f"{told['pid']}\n"


def test_a_run_is_killed_with_all_it_has_started_and_no_other_is(server, project):
    source = """\
import os, subprocess, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    time.sleep(60)
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
with open("pids." + sys.argv[1], "w") as f:
    f.write(f"{os.getpid()} {child.pid}\\n")
if sys.argv[1] == "goes":
    time.sleep(60)
while not os.path.exists("go on"):
    time.sleep(0.02)
child.kill()
print("stayed")
"""
    folder = project(source)
    stays = server.start(folder, entry="main.py", argv=["stays"])
    goes = server.start(folder, entry="main.py", argv=["goes"])
    eventually(lambda: all((folder / f"pids.{n}").exists() for n in ("stays", "goes")))
    pids = [int(p) for p in (folder / "pids.goes").read_text().split()]
    server.say(kill=goes)
    assert server.wait(goes).status == -9
    assert eventually(lambda: not any(is_alive(p) for p in pids))
    (folder / "go on").touch()
    assert server.wait(stays).stdout == "stayed\n"


def test_what_a_run_leaves_behind_ends_with_it(server, project):
    source = """\
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open("pid", "w") as f:
            print(os.getpid(), file=f)
        time.sleep(60)
    os._exit(0)
while not os.path.exists("pid"):
    time.sleep(0.02)
"""
    folder = project(source)
    assert server.wait(server.start(folder, entry="main.py")).status == 0
    assert eventually(lambda: not is_alive(int((folder / "pid").read_text())))


CRASHES = {
    "segfault": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -11),
    "by its own hand": ("import os; os._exit(7)", 7),
    "killed by its child": (
        "import os, signal, time\nif os.fork() == 0:\n    os.kill(os.getppid(), 9)\ntime.sleep(20)",
        -9,
    ),
    "in C": ("import ctypes; ctypes.string_at(0)", -11),
    "an error": ("1 / 0", 1),
    "no such file": (None, 1),
}


@pytest.mark.parametrize("name", CRASHES)
def test_however_a_run_ends_the_server_goes_on(server, project, name):
    source, status = CRASHES[name]
    folder = project(source or "")
    assert server.wait(server.start(folder, entry="main.py" if source else "missing.py")).status == status
    assert server.wait(server.start(project("print('next')"), entry="main.py")).stdout == "next\n"


BAD = [
    b"\n",
    b"garbage\n",
    b"[1, 2]\n",
    b"{}\n",
    b'"id"\n',
    b"{\n",
    b'{"kill": "nobody"}\n',
    b"\xff\xfe\n",
    b'{"mode": "observe"}\n',
]


def test_bad_requests_are_answered_and_forgotten(server, project):
    for line in BAD:
        server.write(line)
    complaints = [server.message() for _ in range(len(BAD) - 1)]  # to kill nobody is no mistake
    assert all("error" in said for said in complaints)
    server.say(id="half", folder="/nonexistent")
    assert server.message()["started"] == "half"
    assert server.message() == {"ended": "half", "status": 70}
    assert server.wait(server.start(project("print('next')"), entry="main.py")).stdout == "next\n"


def test_requests_come_in_pieces(server, project):
    import json

    folder = project("print('here')")
    files = {kind: str(folder / kind) for kind in ("events", "stdout", "stderr")}
    request = {"id": "p", "mode": "observe", "folder": str(folder), "cwd": str(folder), "entry": "main.py", **files}
    line = json.dumps(request).encode() + b"\n" + json.dumps({"kill": "nobody"}).encode() + b"\n"
    server.write(line[:20])
    time.sleep(0.1)
    server.write(line[20:])
    assert server.message()["started"] == "p"
    assert server.message() == {"ended": "p", "status": 0}
    assert (folder / "stdout").read_text() == "here\n"


def test_limits_temp_and_standard_input(server, project, tmp_path):
    source = """\
import os, resource, sys, tempfile
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], resource.getrlimit(resource.RLIMIT_CORE)[0])
print(tempfile.gettempdir(), os.environ["TMPDIR"])
print(repr(sys.stdin.read()), sorted(os.listdir("/proc/self/fd"))[:3])
"""
    (tmp_path / "temp").mkdir()
    name = server.start(
        project(source), entry="main.py", temp=str(tmp_path / "temp"), rlimits={"nofile": 77, "core": 0, "unknown": 1}
    )
    assert server.wait(name).stdout.splitlines() == ["77 0", f"{tmp_path}/temp {tmp_path}/temp", "'' ['0', '1', '2']"]


def test_runs_do_not_see_what_others_did_to_torch(server, project):
    source = (
        "import torch, os\nprint(torch.get_default_dtype(), torch.get_num_threads(), 'SEEN' in os.environ)\n"
        "torch.set_default_dtype(torch.float64)\ntorch.set_num_threads(3)\nos.environ['SEEN'] = '1'\n"
        "torch.nn.Linear.forward = None\n"
    )
    first, second = (server.wait(server.start(project(source), entry="main.py")).stdout for _ in range(2))
    assert first == second


def test_an_editable_install_means_the_copy(server, original, tmp_path):
    """The project's own package is on the path by an editable install: in a run the copy is meant."""
    for folder, word in ((original, "original"), (tmp_path / "copy", "copy")):
        (folder / "src" / "pack").mkdir(parents=True, exist_ok=True)
        (folder / "src" / "pack" / "__init__.py").write_text(f"word = {word!r}\n")
        (folder / "main.py").write_text("from pack import word\nprint(word)\n")
    copied = server.wait(server.start(tmp_path / "copy", entry="main.py", project=str(original)))
    assert copied.stdout == "copy\n"
    assert server.wait(server.start(tmp_path / "copy", entry="main.py")).stdout == "original\n"


def first_word(agent, tmp_path, *, torch="", flags=()):
    if torch:
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").write_text(torch)
    env = {"PYTHONPATH": str(tmp_path)}
    other = type(agent)(tmp_path, [sys.executable, *flags, str(SERVE)], env)
    other.process.wait(20)
    return other.ready


def test_no_torch(agent, tmp_path):
    said = first_word(agent, tmp_path, flags=["-S"])
    assert (said["ready"], said["error"]) == (False, "no-torch")
    assert "No module named 'torch'" in said["detail"]


def test_torch_too_old(agent, tmp_path):
    said = first_word(agent, tmp_path, torch="__version__ = '1.8.0+cu111'\n")
    assert (said["ready"], said["error"], said["detail"]) == (False, "old-torch", "1.8.0+cu111")


def test_torch_that_cannot_be_imported(agent, tmp_path):
    said = first_word(agent, tmp_path, torch="print('hello')\nraise OSError('libcudart.so.9: cannot open')\n")
    assert (said["ready"], said["error"]) == (False, "no-torch")
    assert said["detail"] == "OSError: libcudart.so.9: cannot open"


def test_quitting_ends_every_run(server, project, tmp_path):
    """The last test here."""
    folder = project("import os, time\nopen('pid', 'w').write(str(os.getpid()) + '\\n')\ntime.sleep(60)")
    server.start(folder, entry="main.py")
    eventually(lambda: (folder / "pid").exists() and (folder / "pid").read_text().endswith("\n"))
    server.say(quit=True)
    assert server.process.wait(20) == 0
    assert eventually(lambda: not is_alive(int((folder / "pid").read_text())))
    assert not os.path.exists(f"/proc/{server.process.pid}/task")
