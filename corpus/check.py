#!/usr/bin/env python3
"""Check that every case of the corpus is what it says, by running its programs.

    check.py [--python PYTHON] [--jobs N] [--format-only] [CASES_DIR]... [--slug SLUG]...

For each case: case.toml is complete; before/ fails with the stated error at the stated place; every after*/
runs to its end, twice with the same trajectory; every wrong-*/ is told apart from all of them by the judge.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import case as cases
import for_cuda
from case import Case
from judge import Trajectory, compare
from score import experts_trajectory, quiet_environment, sh, snapshot, trajectory

HANG_LIMIT = 30.0
"""Seconds after which a program that hangs on its error is stopped."""


def format_problems(case: Case) -> list[str]:
    """What is wrong with the case's files, without running any of them."""
    problems = []
    if case.cause not in cases.CAUSES:
        problems.append(f"unknown cause {case.cause!r}")
    if case.error not in cases.WORDINGS and not case.error.startswith("other:"):
        problems.append(f"unknown error {case.error!r}")
    if case.answer not in ("patch", "explain"):
        problems.append(f"unknown answer {case.answer!r}")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", case.slug):
        problems.append("the folder's name is no kebab-case slug")
    if not case.title.strip() or not case.notes.strip():
        problems.append("no title or no notes")
    if case.answer == "patch" and not (case.folder / "after").is_dir():
        problems.append("no after/")
    before = snapshot(case.before)
    if Path(case.entry) not in before:
        problems.append(f"no {case.entry} in before/")
    for folder in (*case.experts, *case.wrongs):
        files = snapshot(folder)
        if set(files) != set(before):
            problems.append(f"{folder.name}/ has other files than before/")
        elif files == before:
            problems.append(f"{folder.name}/ equals before/")
    for path in sorted(case.folder.rglob("*.py")):
        try:
            ast.parse(path.read_bytes(), filename=str(path))
        except SyntaxError as error:
            problems.append(f"{path.relative_to(case.folder)} does not parse: {error}")
    return problems


def failing_place(stderr: str, wording: str, folder: Path) -> str:
    """``file:line`` of the innermost frame below ``folder`` in the last traceback with the wording."""
    before_message = stderr[: stderr.rfind(wording)]
    frame = re.compile(rf'File "{re.escape(str(folder.resolve()))}/([^"]+)", line (\d+)')
    places = [f"{m[1]}:{m[2]}" for m in frame.finditer(before_message)]
    return places[-1] if places else ""


def before_problems(case: Case, python: str, work: Path) -> list[str]:
    """Run before/ and compare its failure with the one that case.toml states."""
    run = work / "before"
    shutil.copytree(case.before, run)
    done = sh([python, case.entry, *case.args], run, HANG_LIMIT if case.hangs else 120)
    problems = []
    if case.wording not in done.err:
        return [f"before/ does not fail with {case.error}: exit {done.code}, {done.err.strip()[-160:]}"]
    if (done.code == 124) != case.hangs:
        problems.append("before/ " + ("ends" if case.hangs else "hangs"))
    place = failing_place(done.err, case.wording, run)
    if place != case.fails_at:
        problems.append(f"before/ fails at {place}, not at {case.fails_at or '(not stated)'}")
    return problems


def training_problems(case: Case, python: str, work: Path) -> list[str]:
    """Run after*/ and wrong-*/ under the judge."""
    problems = []
    wanted: list[Trajectory] = []
    for expert in case.experts:
        kept: Trajectory = json.loads(experts_trajectory(python, expert, case, work).read_text())
        again = work / f"again-{expert.name}"
        shutil.copytree(expert, again)
        reasons = compare(trajectory(python, again, case, work / f"{again.name}.json"), kept, case.judge_losses)
        if reasons:
            problems.append(f"{expert.name}/ against itself: {'; '.join(reasons)}")
        wanted.append(kept)
    for wrong in case.wrongs:
        run = work / wrong.name
        shutil.copytree(wrong, run)
        got = trajectory(python, run, case, work / f"{wrong.name}.json")
        if any(not compare(got, want, case.judge_losses) for want in wanted):
            problems.append(f"{wrong.name}/ trains as an expert's repair does")
    return problems


def check(case: Case, python: str, run_programs: bool = True) -> list[str]:
    """Everything that is wrong with the case; empty when it is sound."""
    problems = format_problems(case)
    cannot_run = case.for_cuda and not for_cuda.has_cuda(python)  # its programs are those of the case it was made from
    if problems or cannot_run or not run_programs:
        return problems
    with tempfile.TemporaryDirectory() as tmp:
        return before_problems(case, python, Path(tmp)) + training_problems(case, python, Path(tmp))


def main() -> int:
    """The command line; 0 when every case is sound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--format-only", action="store_true", help="run no program")
    parser.add_argument("--slug", action="append", default=[])
    parser.add_argument("folders", nargs="*", type=Path, help="folders of cases; without any: the whole corpus")
    a = parser.parse_args()
    found = cases.find(a.folders or cases.FOLDERS, a.slug)
    bad = 0
    with ThreadPoolExecutor(a.jobs) as pool:
        reports = pool.map(lambda case: check(case, a.python, not a.format_only), found)
        for case, problems in zip(found, reports, strict=True):
            bad += bool(problems)
            print(f"{'BAD' if problems else 'ok':<4}{case.slug:<44}{'; '.join(problems)}", flush=True)
    print(f"{len(found) - bad}/{len(found)} cases sound")
    return 1 if bad else 0


if __name__ == "__main__":
    quiet_environment()
    sys.exit(main())
