#!/usr/bin/env python3
"""Score a repair tool on folders of cases (see README.md), with judge.py as the referee.

    score.py [--tool 'autodetach fix'] [--python PYTHON] [--json OUT] [--keep DIR] [--time] [--jobs N]
             [--corpus DIR]... [CASES_DIR] [SLUG...]

For each case the program in before/ is copied to a fresh folder and `TOOL ENTRY [-- ARGS]` is run in it. The
unified diff on its standard output is applied to another fresh copy with `git apply`, and the judge compares
the training of that copy with the training of after/ (or of any other folder named after-*).

Verdicts: correct    the patched program trains as the expert's does (or: rightly explained, no patch)
          abstained  no patch, though a correct one exists; the honest miss
          wrong      a patch that does not apply, does not run or trains differently; the worst outcome
          broken     the tool crashed, ran out of time or touched the user's files
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import case as cases
import for_cuda
from case import Case
from judge import Trajectory

JUDGE = Path(__file__).with_name("judge.py")
VERDICTS = ("correct", "abstained", "wrong", "broken")


@dataclass(frozen=True)
class Done:
    """A finished command. Its output keeps its bytes: a patch of a CRLF file has CRLF lines."""

    code: int
    out: bytes
    err: str
    seconds: float


@dataclass(frozen=True)
class Row:
    """What one tool made of one case."""

    case: str
    cause: str
    answer: str
    verdict: str = ""
    why: str = ""
    seconds: float = 0.0
    exit: int = 0
    lines: int = 0
    ratio: float | None = None

    def __str__(self) -> str:
        ratio = "" if self.ratio is None else self.ratio
        return f"{self.verdict:<10}{self.case:<40}{self.seconds:>7.1f} s  {ratio:>5}  {self.why}"


def sh(command: list[str], folder: Path, timeout: float = 300) -> Done:
    """Run a command to its end; code 124 when it ran out of time. All it started ends with it."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        # files, not pipes: a child left behind by the program would hold a pipe open for ever
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = 124
        seconds = time.perf_counter() - start
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        out.seek(0)
        err.seek(0)
        return Done(code, out.read(), err.read().decode("utf-8", "replace"), seconds)


def snapshot(folder: Path) -> dict[Path, bytes]:
    """Every file below the folder, without Python's own caches."""
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and "__pycache__" not in p.parts)
    return {p.relative_to(folder): p.read_bytes() for p in files}


def trajectory(python: str, folder: Path, case: Case, out: Path) -> Trajectory:
    """Run the program in ``folder`` under the judge, in place; what was rewritten for CUDA, on a machine without it, as
    it was before."""
    if case.for_cuda and not for_cuda.has_cuda(python):
        for_cuda.undo(folder)
    limit = ["--max-steps", str(case.max_steps)] if case.max_steps else []
    done = sh([python, str(JUDGE), "record", *limit, str(out), case.entry, *case.args], folder)
    if not out.exists():
        error = f"judge could not record: {done.err[-300:]}"
        return {"ended": False, "error": error, "steps": [], "live": [], "backwards": []}
    recorded: Trajectory = json.loads(out.read_text())
    return recorded


def experts_trajectory(python: str, expert: Path, case: Case, work: Path) -> Path:
    """The expert's trajectory, kept between runs under the folder's content, for it never changes."""
    key = (python, case.entry, case.args, case.max_steps, JUDGE.read_bytes(), snapshot(expert))
    content = hashlib.sha256(repr(key).encode()).hexdigest()[:24]
    kept = Path(tempfile.gettempdir()) / "autodetach-score" / f"{content}.json"
    if not kept.exists():
        fresh = work / expert.name
        shutil.copytree(expert, fresh)
        kept.parent.mkdir(exist_ok=True)
        partial = kept.with_suffix(f".{os.getpid()}-{case.slug}")
        partial.write_text(json.dumps(trajectory(python, fresh, case, work / f"{expert.name}.json")))
        partial.replace(kept)
    return kept


def against_experts(got: Path, python: str, case: Case, work: Path) -> str:
    """Empty when the trajectory in ``got`` equals an expert's; else the judge's word on the last one."""
    reason = "differs: no patch was right here"
    how = ["--losses"] if case.judge_losses else []
    for expert in case.experts:
        want = experts_trajectory(python, expert, case, work)
        done = sh([sys.executable, str(JUDGE), "compare", *how, str(got), str(want)], work)
        if done.code == 0:
            return ""
        reason = done.out.decode("utf-8", "replace").strip()
    return reason


def changed_lines(diff: str) -> int:
    """How many lines the diff removes and adds."""
    return sum(line[:1] in "+-" and not line.startswith(("+++", "---")) for line in diff.splitlines() if line)


def time_by_hand(python: str, case: Case, run: Path, work: Path) -> float:
    """Seconds to run the broken and the fixed program once each, as a user would by hand."""
    command = [python, case.entry, *case.args]
    broken = sh(command, run).seconds
    good = work / "by-hand"
    shutil.copytree(case.experts[0] if case.experts else case.before, good)
    if case.max_steps:  # never ends by itself
        start = time.perf_counter()
        trajectory(python, good, case, work / "by-hand.json")
        return broken + time.perf_counter() - start
    return broken + sh(command, good).seconds


def score_case(case: Case, tool: str, python: str, work: Path, timed: bool = False) -> Row:
    """Run the tool on one case, in the empty folder ``work``."""
    run, patched = work / "run", work / "patched"
    shutil.copytree(case.before, run)
    shutil.copytree(case.before, patched)
    untouched = snapshot(run)
    args = ["--", *case.args] if case.args else []
    done = sh([*shlex.split(tool), case.entry, *args], run)
    row = Row(case.slug, case.cause, case.answer, exit=done.code, seconds=round(done.seconds, 2))
    (work / "stdout.txt").write_bytes(done.out)
    (work / "stderr.txt").write_text(done.err, encoding="utf-8")
    if timed:
        if not case.hangs:
            row = replace(row, ratio=round(done.seconds / time_by_hand(python, case, run, work), 2))
    elif snapshot(run) != untouched:
        return replace(row, verdict="broken", why="the user's files were touched")
    if done.code not in (0, 1, 3):  # a usage error, a refusal, a crash or a time-out: none has a reason here
        return replace(row, verdict="broken", why=f"exit {done.code}: {done.err.strip()[-200:]}")
    if b"--- " not in done.out:
        if case.answer == "explain":
            if done.err.strip() and done.code == 1:
                return replace(row, verdict="correct")
            return replace(row, verdict="broken", why="no explanation, or the wrong exit status")
        return replace(row, verdict="abstained", why=(done.err.strip().splitlines() or [""])[-1][:200])
    row = replace(row, lines=changed_lines(done.out.decode("utf-8", "replace")))
    (work / "fix.diff").write_bytes(done.out)
    applied = sh(["git", "apply", "--unsafe-paths", "--directory=", str(work / "fix.diff")], patched)
    if applied.code:
        return replace(row, verdict="wrong", why=f"does not apply: {applied.err.strip()[:160]}")
    got = work / "got.json"
    got.write_text(json.dumps(trajectory(python, patched, case, got)))
    reason = against_experts(got, python, case, work)
    return replace(row, verdict="wrong" if reason else "correct", why=reason[:200])


def score(
    found: list[Case],
    tool: str,
    python: str = sys.executable,
    keep: str | None = None,
    timed: bool = False,
    jobs: int = 1,
) -> Iterator[Row]:
    """Score the tool on the cases, ``jobs`` at a time; rows come in the order of the cases."""

    def one(case: Case) -> Row:
        with tempfile.TemporaryDirectory() as tmp:
            work = Path(keep).resolve() / case.slug if keep else Path(tmp)
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            return score_case(case, tool, python, work, timed)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(one, found)


def main() -> int:
    """The command line; 0 when every case is correct."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="autodetach fix")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--json")
    parser.add_argument("--keep", help="keep each case's files below this folder")
    parser.add_argument(
        "--time",
        action="store_true",
        help="also time the broken and the fixed program by hand; ratio = tool / (broken + fixed)",
    )
    parser.add_argument("--jobs", type=int, default=1, help="cases scored at the same time")
    parser.add_argument("--corpus", action="append", default=[], help="one more folder of cases")
    parser.add_argument("cases", nargs="?", help="a folder of cases; without any: the whole corpus")
    parser.add_argument("slugs", nargs="*")
    a = parser.parse_args()
    named = [Path(p) for p in [a.cases, *a.corpus] if p]
    rows = []
    found = cases.find(named or cases.FOLDERS, a.slugs)
    for row in score(found, a.tool, a.python, a.keep, a.time, a.jobs):
        rows.append(row)
        print(row, flush=True)
    counts = {v: sum(r.verdict == v for r in rows) for v in VERDICTS}
    print(f"{counts['correct']}/{len(rows)} correct, " + ", ".join(f"{counts[v]} {v}" for v in VERDICTS[1:]))
    if a.json:
        Path(a.json).write_text(json.dumps({"counts": counts, "cases": [asdict(r) for r in rows]}, indent=1))
    return 0 if counts["correct"] == len(rows) else 1


def quiet_environment() -> None:
    """Small programs run faster on one thread, and the same to the bit; no caches beside the sources."""
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")


if __name__ == "__main__":
    quiet_environment()
    sys.exit(main())
