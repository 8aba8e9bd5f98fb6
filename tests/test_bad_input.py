"""Bad input: one clear line on stderr, the documented exit status, nothing lost, no traceback of ours."""

from __future__ import annotations

import re
import stat
import subprocess
import sys

import pytest

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


@pytest.fixture
def folder(tmp_path):
    """Where the user stands."""
    place = tmp_path / "work"
    place.mkdir()
    return place


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def contents(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def is_one_line_of_ours(said, slug):
    return said.stderr.startswith(f"autodetach: error[{slug}]: ") and said.stderr.count("\n") == 1


# -- what cannot even be started: exit 2 -----------------------------------------------------------------------------

UNUSABLE = {
    "no such file": ({}, ["missing.py"], "usage", "no such file: "),
    "a folder": ({"d/x.py": ""}, ["d"], "usage", "is a folder; name the script in it, or use -m"),
    "no text": ({"t.py": b"\x7fELF\0\0\1"}, ["t.py"], "usage", "is not Python source"),
    "no program": ({}, [], "usage", "name the program to repair"),
    "a bad timeout": ({"t.py": ""}, ["--timeout", "never", "t.py"], "usage", "--timeout must be a number of seconds"),
    "an unknown option": (
        {"t.py": ""},
        ["--lr", "1", "t.py"],
        "usage",
        "arguments of the program itself come after --",
    ),
    "no such interpreter": ({"t.py": ""}, ["--python", "/no/python", "t.py"], "interpreter", "no such interpreter"),
    "no interpreter": ({"t.py": ""}, ["--python", "t.py", "t.py"], "interpreter", "is not an executable Python"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_what_cannot_be_started(command, folder, name):
    files, arguments, slug, words = UNUSABLE[name]
    write(folder, files)
    said = command(folder, "fix", *arguments)
    assert (said.status, said.stdout) == (2, "")
    assert is_one_line_of_ours(said, slug) and words in said.stderr


@pytest.fixture(scope="module")
def bare_interpreter(tmp_path_factory):
    """A virtual environment without torch."""
    place = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    return place


def test_an_interpreter_without_torch(in_a_process, folder, bare_interpreter):
    write(folder, {"t.py": BROKEN})
    said = in_a_process(folder, "fix", "--python", str(bare_interpreter / "bin" / "python"), "t.py")
    assert (said.status, said.stdout) == (2, "")
    assert is_one_line_of_ours(said, "interpreter") and "has no torch" in said.stderr and "--python" in said.stderr


TORCHES = {
    "too old": ("__version__ = '1.8.0'\n", "1.8.0"),
    "broken": ("raise ImportError('libcudart.so.9: cannot open shared object file')\n", "libcudart.so.9"),
    "another package of that name": ("x = 1\n", "is not PyTorch"),
}


@pytest.mark.parametrize("name", TORCHES)
def test_a_torch_that_cannot_be_used(in_a_process, folder, bare_interpreter, name):
    source, words = TORCHES[name]
    package = next(bare_interpreter.glob("lib/python*/site-packages")) / "torch"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text(source)
    write(folder, {"t.py": BROKEN})
    try:
        said = in_a_process(folder, "fix", "--python", str(bare_interpreter), "t.py")
    finally:
        (package / "__init__.py").unlink()
        package.rmdir() if not any(package.iterdir()) else None
    assert (said.status, said.stdout) == (2, "")
    assert is_one_line_of_ours(said, "interpreter") and words in said.stderr


# -- programs that fail in another way: exit 3, with their own words -------------------------------------------------

ARGUMENTS = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--data', required=True)\np.parse_args()\n"
FAILING = {
    "a syntax error": ("import torch\ndef f(:\n", "def f(:"),
    "prose": ("# Hello\n\nThis is no program.\n", "SyntaxError"),
    "no encoding declared": (b"# caf\xe9\n", "no encoding declared"),
    "an error of its own": ("import lib\nlib.go({})\n", "KeyError: 'data'"),
    "a syntax error in a module": ("import bad\n", "x = = 1"),
    "a missing module": ("import torch, nowhere\n", "No module named 'nowhere'"),
    "a missing file": ("open('data/train.csv')\n", "No such file or directory: 'data/train.csv'"),
    "exit status": ("import sys; print('usage: t.py DATA', file=sys.stderr); sys.exit(3)\n", "usage: t.py DATA"),
    "exit status without a word": ("import sys; sys.exit(3)\n", "exit status 3"),
    "a crash": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)\n", "the signal SIGSEGV"),
    "needs stdin": ("n = int(input('how many? '))\n", "standard input, which is empty here"),
    "needs arguments": (ARGUMENTS, "the following arguments are required: --data"),
    "removes its folder": ("import os, shutil\nshutil.rmtree(os.getcwd())\n1 / 0\n", "ZeroDivisionError"),
    "says very much": ("import sys\nprint('\\x1b[31m' * 99999)\nsys.stderr.write('x' * 3000000)\n1 / 0\n", "1 / 0"),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_program_that_fails_in_another_way(command, folder, name):
    source, words = FAILING[name]
    files = {"t.py": source, "lib.py": "def go(d):\n    d['data']\n", "bad.py": "x = = 1\n"}
    write(folder, files)
    said = command(folder, "fix", "t.py")
    assert (said.status, said.stdout) == (3, "")
    assert said.stderr.startswith("the program failed, but not with an error that autodetach repairs\n")
    assert words in said.stderr and "\x1b" not in said.stderr
    assert "agent" not in said.stderr and "autodetach-" not in said.stderr  # neither our frames nor the scratch copy
    assert contents(folder) == {n: c if isinstance(c, bytes) else c.encode() for n, c in files.items()}
    assert str(folder / "t.py") in said.stderr or "Traceback" not in said.stderr


@pytest.mark.parametrize(("files", "module"), [({}, "nope"), ({"p/__init__.py": ""}, "p")])
def test_a_module_that_python_cannot_run(command, folder, files, module):
    write(folder, files)
    said = command(folder, "fix", "-m", module)
    assert (said.status, said.stdout) == (3, "") and "No module named" in said.stderr


def test_a_program_that_ends_its_runner(command, folder):
    write(folder, {"t.py": "import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(20)\n"})
    said = command(folder, "fix", "t.py")
    assert (said.status, said.stdout) == (3, "") and "the run was lost" in said.stderr


ENDLESS = """\
import torch
w = torch.ones(1, requires_grad=True)
opt = torch.optim.SGD([w], 0.1)
while True:
    w.sum().backward()
    opt.step()
"""


@pytest.mark.parametrize("source", [ENDLESS, "while True: pass\n"])
def test_a_program_that_runs_for_ever(command, folder, source):
    write(folder, {"t.py": source})
    said = command(folder, "fix", "--timeout", "1.5", "t.py")
    assert (said.status, said.stdout) == (3, "")
    assert "no failure within 1.5 s" in said.stderr and "--timeout" in said.stderr
    assert re.search(r"\(\d+ steps? and \d+ backward pass(es)?\)", said.stderr)
    assert ("(0 steps and 0 backward passes)" in said.stderr) == (source != ENDLESS)


# -- nothing to repair: exit 0 --------------------------------------------------------------------------------------

CATCHING = "    try:\n        h.pow(2).sum().backward()\n    except RuntimeError:\n        h = h.detach()\n"
CLEAN = {
    "it trains": (ENDLESS.replace("while True", "for _ in range(3)"), "3 steps and 3 backward passes"),
    "it never calls backward": ("print('hello')\n", "the program never calls backward"),
    "it is empty": ("", "the program never calls backward"),
    "it prints very much": ("print('x' * 30000000)\n", "nothing to repair"),
    "it catches the error and goes on": (
        BROKEN.replace("    h.pow(2).sum().backward()\n", CATCHING),
        "nothing to repair",
    ),
    "it catches an error of another kind": (
        "import torch\nw = torch.ones(1, requires_grad=True)\nw.sum().backward()\n"
        "try:\n    w.numpy()\nexcept RuntimeError:\n    print(w.detach().numpy())\n",
        "1 step and 1 backward pass",
    ),
    "it leaves with status 0": ("import sys\nsys.exit(0)\n", "nothing to repair"),
}  # fmt: skip


@pytest.mark.parametrize("name", CLEAN)
def test_a_program_without_a_fault(command, folder, name):
    source, words = CLEAN[name]
    write(folder, {"t.py": source})
    for flags in ([], ["--check"], ["--apply"]):
        said = command(folder, "fix", *flags, "t.py")
        assert (said.status, said.stdout) == (0, "")
        assert said.stderr.startswith("nothing to repair") and words in said.stderr
        if name != "it trains":
            break
    assert contents(folder) == {"t.py": source.encode()}


# -- odd sources, odd places -----------------------------------------------------------------------------------------

COOKIE = "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '€'; "
LAYOUTS = {
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "carriage returns": lambda text: text.replace("\n", "\r\n").encode(),
    "tabs": lambda text: text.replace("    ", "\t").encode(),
    "form feeds": lambda text: text.replace("opt =", "\x0c\nopt =").encode(),
    "no newline at the end": lambda text: text.rstrip("\n").encode(),
    "latin-1": lambda text: ("# -*- coding: latin-1 -*-\nprint('h\xf6he')\n" + text).encode("latin-1"),
    "another cookie": lambda text: (COOKIE + text).encode("cp1252"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_source_of_an_odd_layout_keeps_it(command, folder, name):
    data = LAYOUTS[name](BROKEN)
    write(folder, {"t.py": data})
    said = command(folder, "fix", "--apply", "t.py")
    assert said.status == 0, said.stderr
    assert contents(folder) == {"t.py": data.replace(READ.encode(), REPAIRED.encode())}
    back = said.stdout.encode("utf-8", "surrogateescape")
    subprocess.run(["patch", "-R", "-p1", "--binary"], input=back, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    assert contents(folder) == {"t.py": data}


def test_outside_any_repository_with_blanks_and_accents_and_nothing_may_be_written(in_a_process, tmp_path):
    """A real process, under the isolation that the machine offers, in a project that is read-only."""
    folder = tmp_path / "mein Projekt é"
    script = "Läufe 1/trainiere ü.py"
    write(folder, {script: BROKEN, "daten.txt": "1"})
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    try:
        said = in_a_process(folder, "fix", script)
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(path.stat().st_mode | stat.S_IWUSR)
    assert said.status == 0, said.stderr
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before
    assert contents(folder) == {script: BROKEN.encode(), "daten.txt": b"1"}
    subprocess.run(["git", "apply"], input=said.stdout.encode(), cwd=folder, check=True)
    assert (folder / script).read_text() == BROKEN.replace(READ, REPAIRED)


def test_a_file_that_changed_since_the_analysis_is_not_written(command, folder, monkeypatch):
    from autodetach import pipeline

    write(folder, {"t.py": BROKEN})
    plain = pipeline.fix

    def fix(*arguments):
        outcome = plain(*arguments)
        (folder / "t.py").write_text(BROKEN + "# the user goes on typing\n")
        return outcome

    monkeypatch.setattr("autodetach.pipeline.fix", fix)
    said = command(folder, "fix", "--apply", "-q", "t.py")
    assert said.status == 4
    assert is_one_line_of_ours(said, "refused") and "t.py" in said.stderr and "changed" in said.stderr
    assert (folder / "t.py").read_text() == BROKEN + "# the user goes on typing\n"
    assert REPAIRED in said.stdout  # the patch itself is not lost


def test_a_file_with_uncommitted_changes_is_not_written(command, folder):
    write(folder, {"t.py": BROKEN})
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=T", "-c", "user.email=t@e.org", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    (folder / "t.py").write_text(BROKEN + "# not committed\n")
    said = command(folder, "fix", "--apply", "-q", "t.py")
    assert said.status == 4 and "uncommitted" in said.stderr
    assert (folder / "t.py").read_text() == BROKEN + "# not committed\n"
    assert command(folder, "fix", "--apply", "--allow-dirty", "-q", "t.py").status == 0
    assert (folder / "t.py").read_text() == BROKEN.replace(READ, REPAIRED) + "# not committed\n"


def test_a_script_reached_by_a_link_and_from_another_folder(command, folder, tmp_path):
    write(tmp_path / "elsewhere", {"lib.py": "value = 1\n", "t.py": "from lib import value\n" + BROKEN})
    (folder / "link.py").symlink_to(tmp_path / "elsewhere" / "t.py")
    said = command(folder, "fix", "link.py")
    assert said.status == 0, said.stderr
    assert REPAIRED in said.stdout
    assert (folder / "link.py").is_symlink()
