"""Programs that leave something behind, refuse to die, or go for other processes."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autodetach.runner.limits import Limits

DAEMON = """
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            time.sleep(60)
        os._exit(0)
    time.sleep(0.2)
"""


def test_orphan_daemon(room) -> None:
    result = room.run(DAEMON + "daemon(); say({'event': 'left'})")
    assert result.ended == "exit" and result.events == ({"event": "left"},)  # the room looks for survivors


@pytest.mark.parametrize(
    "program",
    [
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64)); time.sleep(60)",
        "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
        "say({'event': 'x'}); time.sleep(60)",
        "while True: pass",
    ],
    ids=["stops itself", "blocks signals", "deadlock", "sleeps", "spins"],
)
def test_ends_at_the_wall_clock(room, program) -> None:
    result = room.run(program, timeout=0.5)
    assert result.ended == "timeout" and result.seconds < 5


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("os._exit(7)", 7),
        ("sys.exit(3)", 3),
        ("os.abort()", -signal.SIGABRT),
        ("import ctypes; ctypes.string_at(0)", -signal.SIGSEGV),
        ("raise SystemError('x')", 1),
    ],
)
def test_ways_to_end(room, program, status) -> None:
    result = room.run(program)
    assert (result.ended, result.status) == ("exit" if status >= 0 else "signal", status)


def test_kills_its_server(room) -> None:
    with room.session() as session:
        result = session.run({"program": "import os, time; os.kill(os.getppid(), 9); time.sleep(30)"}, timeout=10)
        assert result.ended == "lost" and result.seconds < 5
        again = session.run({"program": "print('again')"}, timeout=10)
        assert (again.ended, again.stdout) == ("exit", "again\n")


def test_stops_its_server(room) -> None:
    with room.session() as session:
        result = session.run({"program": "import os, time; os.kill(os.getppid(), 19); time.sleep(30)"}, timeout=0.3)
        assert result.ended == "timeout" and result.seconds < 10
        assert session.run({"program": "pass"}, timeout=10).ended == "exit"


def test_other_processes_are_out_of_reach(room) -> None:
    victim = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
    try:
        worked = room.attempts(f"""
attempt("see", lambda: open("/proc/{victim.pid}/cmdline").read().index("sleep"))
attempt("kill", lambda: os.kill({victim.pid}, 9))
""")
        time.sleep(0.1)
        if room.enforces("signals to other processes"):
            assert victim.poll() is None and not worked["kill"]
        if room.enforces("seeing other processes"):
            assert not worked["see"]
    finally:
        victim.kill()
        victim.wait()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_parent_ended(room, number, tmp_path) -> None:
    """Whatever ends us ends the program with its daemons; the next session sweeps at the latest."""
    program = "import os, signal, time" + DAEMON + "daemon(); say({'event': 'up'}); time.sleep(60)"
    script = tmp_path / "parent.py"
    script.write_text(f"""
import sys, pathlib
sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})
from autodetach.runner.project import Project
from autodetach.runner.session import Session
folder = pathlib.Path({str(room.project_folder)!r})
project = Project.discover(folder / "train.py", None, folder)
stub = pathlib.Path({str(Path(__file__).resolve().parent.parent / "runner" / "stub_server.py")!r})
with Session(pathlib.Path(sys.executable), project, isolation={room.mechanism.name!r}, serve=stub) as session:
    session.run({{"program": {program!r}}},
                timeout=50, on_event=lambda event: print("up", flush=True))
""")
    parent = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert parent.stdout is not None and parent.stdout.readline() == "up\n"
    assert len(room.survivors()) >= 3
    parent.send_signal(number)
    parent.wait(60)
    deadline = time.monotonic() + 10
    while room.survivors() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert room.survivors() == []
    parent.stdout.close()
    room.run("pass")  # sweeps


def test_fork_bomb(room) -> None:
    result = room.run(
        """
for _ in range(150):
    if os.fork() == 0:
        os.setsid(); time.sleep(30); os._exit(0)
time.sleep(30)
""",
        limits=Limits(processes=60),
    )
    assert result.ended == "limit" and "60 processes" in result.limit


def test_fork_bomb_that_doubles(room) -> None:
    result = room.run("while True: os.fork(); time.sleep(0.03)", limits=Limits(processes=60))
    assert result.ended == "limit" and "60 processes" in result.limit


def test_ends_its_guard(room) -> None:
    """What stands between us and the server; out of reach, or what it guarded is swept all the same."""
    with room.session() as session:
        result = session.run(
            {
                "program": "import os, signal, time\n"
                + DAEMON
                + """
daemon()
with open(f"/proc/{os.getppid()}/stat") as file:
    guard = int(file.read().rpartition(")")[2].split()[1])
for number in (signal.SIGSTOP, signal.SIGKILL):
    try:
        os.kill(guard, number)
    except OSError:
        pass
time.sleep(30)
"""
            },
            timeout=2,
        )
    assert result.ended in ("lost", "timeout") and result.seconds < 15


def test_memory_that_nobody_may_look_into(room) -> None:
    program = """
import ctypes
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
hoard = bytearray(b"x") * (400 << 20)
time.sleep(20)
"""
    result = room.run(program, limits=Limits(memory=300 << 20))
    assert result.ended == "limit" and "300 MiB of memory" in result.limit


def test_memory_hog(room) -> None:
    program = """
hoard = []
for _ in range(80):
    hoard.append(bytearray(b"x") * (10 << 20)); time.sleep(0.005)
"""
    result = room.run(program, limits=Limits(memory=300 << 20))
    assert result.ended == "limit" and "300 MiB of memory" in result.limit


def test_memory_of_children_counts(room) -> None:
    program = """
for _ in range(4):
    if os.fork() == 0:
        hoard = bytearray(b"x") * (90 << 20); time.sleep(20); os._exit(0)
time.sleep(20)
"""
    result = room.run(program, limits=Limits(memory=300 << 20))
    assert result.ended == "limit" and "memory" in result.limit


def test_cpu_of_the_tree(room) -> None:
    program = "os.fork(); os.fork()\nwhile True: pass"
    result = room.run(program, limits=Limits(cpu=0.4))
    assert result.ended == "limit" and "CPU" in result.limit and result.seconds < 5


def test_disk_filler(room) -> None:
    program = """
for number in range(200):
    open(f"junk-{number}", "wb").write(b"x" * (1 << 20)); time.sleep(0.02)
"""
    result = room.run(program, limits=Limits(scratch=30 << 20))
    assert result.ended == "limit" and "30 MiB to disk" in result.limit


def test_one_huge_file(room) -> None:
    result = room.run("open('junk', 'wb').write(b'x' * (50 << 20))", limits=Limits(scratch=20 << 20))
    assert result.ended == "limit" and "20 MiB to disk" in result.limit


HIDING_PLACES = {
    "beside the temp folder": "os.path.dirname(os.environ['TMPDIR'])",
    "beside the events": "os.path.dirname(request['events'])",
    "beside the copies": "os.path.dirname(os.path.dirname(request['folder']))",
    "among the caches": "os.environ['TRITON_CACHE_DIR'] + '/..'",
}


@pytest.mark.parametrize("name", HIDING_PLACES)
def test_disk_filled_where_no_run_of_its_own_lies(room, name) -> None:
    program = f"""
place = os.path.realpath({HIDING_PLACES[name]})
os.makedirs(place, exist_ok=True)
for number in range(60):
    with open(f"{{place}}/junk-{{number}}", "wb") as file:
        file.write(b"x" * (1 << 20))
time.sleep(20)
"""
    result = room.run(program, limits=Limits(scratch=30 << 20))
    assert result.ended == "limit" and "30 MiB to disk" in result.limit, result.stderr


def test_endless_output(room) -> None:
    program = "print('first'); line = 'y' * 1000\nfor _ in range(20000): print(line)\nprint('last line')"
    result = room.run(program, limits=Limits(output=10_000, output_on_disk=1 << 20))
    assert result.ended == "exit" and result.cut
    assert len(result.stdout) <= 10_000 and result.stdout.endswith("last line\n")


def test_no_terminal(room) -> None:
    worked = room.attempts("attempt('tty', lambda: os.open('/dev/tty', os.O_RDWR))\nattempt('stdin', lambda: input())")
    assert worked == {"tty": False, "stdin": False}
