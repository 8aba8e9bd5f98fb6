"""Run many small programs under the judge: each in a process forked from one that has torch imported already."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import judge
from judge import Trajectory

LIMIT = 30
"""Seconds after which a program is stopped."""


@dataclass(frozen=True)
class Ran:
    """The trajectory of a program, what it wrote to stderr, and the folder it ran in."""

    trajectory: Trajectory
    stderr: str
    folder: Path
    seconds: float


class Forge:
    """Imports torch once; forked children share it. Not for programs that need more than one thread."""

    def __init__(self) -> None:
        os.environ["OMP_NUM_THREADS"] = "1"  # threads do not survive a fork
        import torch
        import torch._dynamo  # the optimizers import it at their first use, two seconds long

        torch.set_num_threads(1)

        gc.collect()
        gc.freeze()  # what is imported is no part of a program's live graph, and need not be searched for it
        self._work = Path(tempfile.mkdtemp(prefix="autodetach-forge-"))

    def close(self) -> None:
        shutil.rmtree(self._work, ignore_errors=True)

    def run(self, files: dict[str, bytes], entry: str, args: tuple[str, ...]) -> Ran:
        """Run the program in a fresh folder."""
        folder = self._work / "program"
        shutil.rmtree(folder, ignore_errors=True)
        write(files, folder)
        out, err = self._work / "trajectory.json", self._work / "stderr.txt"
        out.unlink(missing_ok=True)
        start = time.perf_counter()
        child = os.fork()
        if child == 0:
            self._be_the_program(folder, out, err, entry, args)
        os.waitpid(child, 0)
        seconds = time.perf_counter() - start
        said = err.read_text("utf-8", "replace") if err.exists() else ""
        if not out.exists():
            error = f"no trajectory: {said.strip()[-200:]}"
            empty: Trajectory = {"ended": False, "error": error, "steps": [], "live": [], "backwards": []}
            return Ran(empty, said, folder, seconds)
        return Ran(json.loads(out.read_text()), said, folder, seconds)

    def _be_the_program(self, folder: Path, out: Path, err: Path, entry: str, args: tuple[str, ...]) -> None:
        try:
            os.chdir(folder)
            sys.dont_write_bytecode = True
            log = os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            signal.alarm(LIMIT)
            judge.record(str(out), str(folder.resolve() / entry), list(args), max_steps=0, timeout=LIMIT)
            sys.stderr.flush()
        finally:
            os._exit(0)


def write(files: dict[str, bytes], folder: Path) -> None:
    """The files below the folder, byte for byte."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
