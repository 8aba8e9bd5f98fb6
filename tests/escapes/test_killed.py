"""autodetach itself killed at any moment: no file lost or half written, no process and no scratch left.

Some moments in every run of the tests; two hundred of them (``-m nightly``, or this file as a script) take a while.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest

from autodetach.runner.scratch import sweep
from autodetach.source.write import is_interrupted, recover

TRAIN = """\
import torch
from store import Store

cell, store = torch.nn.GRUCell(2, 3), Store()
opt = torch.optim.SGD([*cell.parameters(), *store.cell.parameters()], lr=0.1)
h = torch.zeros(1, 3)
for _ in range(20):
    h = cell(torch.ones(1, 2), h)
    both = h + store.read()
    opt.zero_grad()
    both.pow(2).sum().backward()
    opt.step()
"""
STORE = """\
import torch

class Store:
    def __init__(self):
        self.cell = torch.nn.GRUCell(2, 3)
        self.g = torch.zeros(1, 3)

    def read(self):
        self.g = self.cell(torch.ones(1, 2), self.g)
        return self.g
"""
MANY = 6
WRITER = """
import sys
from pathlib import Path
from autodetach.source.write import write_files
root, many = Path(sys.argv[1]), int(sys.argv[2])
old = {f"{n}.py": b"old\\n" * 2000 for n in range(many)}
print("ready", flush=True)
write_files(root, {name: b"new\\n" * 3000 for name in old}, old)
"""


def marked(mark: str) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if mark.encode() in Path(f"/proc/{name}/environ").read_bytes():
                    found.append(int(name))
            except OSError:
                pass
    return found


def nothing_runs(mark: str, seconds: float = 15) -> bool:
    deadline = time.monotonic() + seconds
    while marked(mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def files(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def kill_a_writer(root: Path, moment: float) -> str:
    """Kill what writes six files after so many seconds; what state that left, once it is made good."""
    old = {f"{n}.py": b"old\n" * 2000 for n in range(MANY)}
    new = dict.fromkeys(old, b"new\n" * 3000)
    for name, data in old.items():
        (root / name).write_bytes(data)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(root), str(MANY)], stdout=subprocess.PIPE)
    assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
    time.sleep(moment)
    writer.kill()
    writer.wait()
    writer.stdout.close()
    left = {name: data for name, data in files(root).items() if name in old}
    assert all(left[name] in (old[name], new[name]) for name in old)
    interrupted = is_interrupted(root)
    assert interrupted or left in (old, new)
    recover(root)
    assert files(root) in (old, new)
    return "interrupted" if interrupted else "old" if files(root) == old else "new"


def kill_a_run(root: Path, temp: Path, moment: float, number: int = signal.SIGKILL) -> str:
    """Kill ``fix --apply`` after so many seconds; whether it had applied by then."""
    before = {"train.py": TRAIN.encode(), "store.py": STORE.encode(), "pyproject.toml": b""}
    for name, data in before.items():
        (root / name).write_bytes(data)
    mark = uuid.uuid4().hex
    ours = subprocess.Popen(
        [sys.executable, "-m", "autodetach", "fix", "--apply", "train.py"],
        cwd=root,
        env={**os.environ, "TMPDIR": str(temp), "KILLED_MARK": mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        ours.wait(moment)
    except subprocess.TimeoutExpired:
        ours.send_signal(number)
    said = ours.communicate()[1].decode()
    assert nothing_runs(mark), f"killed after {moment:.2f} s: something still runs"
    recover(root)
    after = files(root)
    assert after.keys() == before.keys(), f"killed after {moment:.2f} s: {sorted(after)}"
    changed = [name for name in before if after[name] != before[name]]
    assert changed in ([], ["train.py", "store.py"]), (changed, said)
    assert "Traceback" not in said
    sweep(temp)
    assert list(temp.iterdir()) == [], f"killed after {moment:.2f} s"
    return "applied" if changed else "not yet"


@pytest.fixture
def places(tmp_path):
    for name in ("project", "temp"):
        (tmp_path / name).mkdir()
    return tmp_path / "project", tmp_path / "temp"


def test_a_writer_killed_now_and_then(places):
    rng = random.Random(0)
    for _ in range(20):
        kill_a_writer(places[0], rng.random() ** 2 * 0.1)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_killed_now_and_then(places, number):
    rng = random.Random(number)
    for _ in range(2):
        kill_a_run(*places, rng.random() * 4, number)


@pytest.mark.nightly
def test_two_hundred_kills(tmp_path):
    assert sum(two_hundred(tmp_path, 0).values()) == 200


def two_hundred(folder: Path, seed: int) -> dict[str, int]:
    """How often which state was found. The moments are spread over what an undisturbed call takes here."""
    rng, found, lasts = random.Random(seed), {}, {}
    (folder / "temp").mkdir()
    for number in range(202):
        kind = "writer" if number % 3 else "run"
        root = folder / f"{kind}-{number}"
        root.mkdir()
        moment = rng.random() * lasts[kind] if kind in lasts else 300
        begun = time.monotonic()
        state = kill_a_writer(root, min(moment, 3)) if kind == "writer" else kill_a_run(root, folder / "temp", moment)
        if kind not in lasts:
            assert state in ("new", "applied")
            lasts[kind] = 0.3 if kind == "writer" else time.monotonic() - begun
            continue
        found[f"{kind}: {state}"] = found.get(f"{kind}: {state}", 0) + 1
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(two_hundred(Path(place), int((sys.argv[1:] or ["0"])[0])), indent=2))
