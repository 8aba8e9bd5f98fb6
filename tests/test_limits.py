"""Each limit, struck by a real program, from the command line: what is said, the exit status, nothing left."""

from __future__ import annotations

import os

import pytest

from autodetach.source.diff import unified_diff

TRAIN = """\
import torch

w = torch.ones(1, requires_grad=True)
opt = torch.optim.SGD([w], 0.1)
for _ in range(2):
    w.sum().backward()
    opt.step()
"""
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
READ, REPAIRED = "cell(torch.ones(1, 2), h)", "cell(torch.ones(1, 2), h.detach())"

STRIKES = {
    "wall clock": (["--timeout", "1.5"], "import time\ntime.sleep(60)\n", "no failure within 1.5 s", "--timeout"),
    "cpu": (
        ["--max-cpu", "0.8"],
        "import os\nos.fork(); os.fork()\nwhile True: pass\n",
        "used more than 0.8 s of CPU time",
        "--max-cpu",
    ),
    "memory": (
        ["--max-memory", "1.2G"],
        "import time\nhoard = [bytearray(b'x') * (300 << 20) for _ in range(5)]\ntime.sleep(60)\n",
        "used more than 1.2 GiB of memory",
        "--max-memory",
    ),
    "memory of children": (
        ["--max-memory", "1.2G"],
        "import os, time\nfor _ in range(5):\n    if not os.fork():\n        hoard = bytearray(b'x') * (300 << 20)\n"
        "        time.sleep(60)\ntime.sleep(60)\n",
        "used more than 1.2 GiB of memory",
        "--max-memory",
    ),
    "processes": (
        ["--max-processes", "40"],
        "import os, time\nfor _ in range(100):\n    if not os.fork():\n        time.sleep(60)\ntime.sleep(60)\n",
        "had more than 40 processes",
        "--max-processes",
    ),
    "scratch": (
        ["--max-scratch", "20M"],
        "import time\nfor i in range(30):\n    open(f'junk-{i}', 'wb').write(b'x' * (1 << 20))\ntime.sleep(60)\n",
        "wrote more than 20 MiB to disk",
        "--max-scratch",
    ),
    "scratch in the temp folder": (
        ["--max-scratch", "20M"],
        "import tempfile, time\nfolder = tempfile.mkdtemp()\nfor i in range(30):\n"
        "    open(f'{folder}/{i}', 'wb').write(b'x' * (1 << 20))\ntime.sleep(60)\n",
        "wrote more than 20 MiB to disk",
        "--max-scratch",
    ),
    "one huge file": (
        ["--max-scratch", "20M"],
        "open('junk', 'wb').write(b'x' * (50 << 20))\n",
        "wrote more than 20 MiB to disk",
        "--max-scratch",
    ),
}


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "work"
    place.mkdir()
    return place


@pytest.fixture
def fix(command, folder):
    def call(source, *flags):
        (folder / "t.py").write_text(TRAIN + source if "torch" not in source else source)
        return command(folder, "fix", *flags, "t.py")

    return call


@pytest.mark.parametrize("name", STRIKES)
def test_a_limit_that_strikes_before_the_fault(fix, folder, name):
    flags, source, words, option = STRIKES[name]
    said = fix(source, *flags)
    assert (said.status, said.stdout) == (3, ""), said.stderr
    assert words in said.stderr and option in said.stderr and "Traceback" not in said.stderr
    assert "2 steps and 2 backward passes" in said.stderr
    assert [p.name for p in folder.iterdir()] == ["t.py"]


def test_limits_come_from_variables_and_the_project(fix, folder, monkeypatch):
    (folder / "pyproject.toml").write_text("[tool.autodetach]\nmax-processes = 30\n")
    assert "had more than 30 processes" in fix(STRIKES["processes"][1]).stderr
    monkeypatch.setenv("AUTODETACH_TIMEOUT", "1.25")
    assert "within 1.25 s" in fix("import time\ntime.sleep(60)\n").stderr


def test_what_was_cut_of_the_output_is_said(fix):
    said = fix("import sys\nsys.stderr.write('y' * 3000 + '!\\n')\nsys.exit(4)\n", "--max-output", "1000")
    assert said.status == 3 and said.stderr.count("y") < 1100
    assert "ended with exit status 4" in said.stderr
    assert "the last 1000 bytes were kept; --max-output keeps more" in said.stderr


def test_what_is_printed_is_not_what_is_written(fix):
    """Printing much is no reason to end a program, however little it may write."""
    said = fix("for _ in range(3000):\n    print('y' * 9_999)\n" + BROKEN, "--max-scratch", "4M")
    assert said.status == 0 and REPAIRED in said.stdout, said.stderr


def test_a_large_project_is_not_what_a_run_writes(fix, folder):
    for number in range(8):
        (folder / f"{number}.csv").write_bytes(os.urandom(1 << 20))
    said = fix(BROKEN, "--max-scratch", "3M")
    assert said.status == 0 and REPAIRED in said.stdout, said.stderr


@pytest.fixture
def verify(command, folder, tmp_path):
    def call(source, patched):
        (folder / "t.py").write_text(source)
        diff = unified_diff({"t.py": source.encode()}, {"t.py": patched.encode()})
        (tmp_path / "patch.diff").write_text(diff)
        limits = ("--timeout", "4", "--max-memory", "1G")
        return command(folder, "verify", *limits, "--patch", str(tmp_path / "patch.diff"), "t.py")

    return call


# -- in a trial: the verdict says what happened ----------------------------------------------------------------------

ENDS = {
    "a crash": ("os.kill(os.getpid(), signal.SIGSEGV)", "ended with the signal SIGSEGV"),
    "no memory": ("os.kill(os.getpid(), signal.SIGKILL)", "ended with the signal SIGKILL, as the kernel does it"),
    "an exit in silence": ("os._exit(7)", "ended with exit status 7"),
    "its runner's end": ("os.kill(os.getppid(), 9); time.sleep(60)", "ended its runner"),
    "a limit": (
        "hoard = bytearray(b'x') * (900 << 20); time.sleep(60)",
        "used more than 1 GiB of memory; --max-memory",
    ),
    "no end": ("time.sleep(60)", "ran for more than 4 s; --timeout allows more"),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_trial_that_dies_says_of_what(verify, name):
    code, words = ENDS[name]
    detached = BROKEN.replace(READ, REPAIRED)
    patched = detached.replace("    opt.step()\n", f"    opt.step()\n    if _ == 4:\n        {code}\n")
    source = "import os, signal, time\n" + BROKEN
    said = verify(source, "import os, signal, time\n" + patched)
    assert said.status == 1, said.stderr
    assert f"failed runs: the patched program {words}" in " ".join(said.stdout.split()), said.stdout


@pytest.mark.parametrize(("last", "level"), [(6, "safe"), (2, "unsafe")])
def test_a_program_that_dies_soon_is_compared_as_far_as_it_lives(verify, last, level):
    """Whatever its graphs. After too few steps nothing is called safe."""
    deadly = "import os, time\n" + BROKEN.replace(
        "    opt.step()\n", f"    opt.step()\n    if _ == {last}: os._exit(9)\n"
    )
    said = verify(deadly, deadly.replace(READ, REPAIRED))
    assert said.status == (level == "unsafe") and f"[{level}]" in said.stdout, said.stdout
    assert "in a reference run the program ended with exit status 9" in " ".join(said.stdout.split())


def test_a_program_that_leaves_by_os_exit_is_repaired_all_the_same(fix):
    said = fix("import os\n" + BROKEN + "os._exit(0)\n")
    assert said.status == 0 and REPAIRED in said.stdout, said.stderr
