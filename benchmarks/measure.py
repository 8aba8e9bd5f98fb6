"""Timing commands side by side: what is compared runs in turns, on the same machine, in the same minutes."""

from __future__ import annotations

import compileall
import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 900.0


@dataclass(frozen=True)
class Took:
    """One finished command: seconds on the clock, seconds of processor time of its whole tree."""

    wall: float
    cpu: float
    code: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    """One thread each, so that two things measured in turns are not measured against a third; ours to be imported."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("AUTODETACH_")}
    return env | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)} | more


def timed(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> Took:
    """Run a command to its end. What it leaves behind is ended; one that takes for ever has code 124."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begun = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=dict(env), stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        alarm = signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
        signal.setitimer(signal.ITIMER_REAL, LONGEST)
        try:
            _, status, used = os.wait4(process.pid, 0)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, alarm)
        wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    code = 124 if wall >= LONGEST else process.returncode
    return Took(wall, used.ru_utime + used.ru_stime, code, *texts)


def in_turns(rounds: int, *commands: Callable[[], Took]) -> list[list[Took]]:
    """Each command once a round; one list a command comes out."""
    rows = [[command() for command in commands] for _ in range(rounds)]
    return [list(column) for column in zip(*rows, strict=True)]


def wall(took: Sequence[Took]) -> float:
    return median(t.wall for t in took)


def cpu(took: Sequence[Took]) -> float:
    return median(t.cpu for t in took)


def fix_command(*more: str, package: Path = ROOT) -> list[str]:
    """The tool as it is in ``package``, which need not be the one that measures."""
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(package)!r})\n"
            "from autodetach.cli import main; main()", *more]  # fmt: skip


def compiled(package: Path = ROOT) -> None:
    """As an installation leaves it: nobody compiles the tool anew in every run."""
    compileall.compile_dir(package / "autodetach", quiet=2)


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Of a power law through the larger half of the sizes (at least two), where the constant part weighs least."""
    kept = max(2, (len(sizes) + 1) // 2)
    xs = [math.log(s) for s in sizes[-kept:]]
    ys = [math.log(s) for s in seconds[-kept:]]
    mean_x, mean_y = sum(xs) / kept, sum(ys) / kept
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sum((x - mean_x) ** 2 for x in xs)
