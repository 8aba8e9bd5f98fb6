"""A whole ``fix`` against the two runs that a user would make by hand: the broken program and the repaired one.

The repaired program is run to the step that the proof reaches, so both sides see the same training.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, Took, cpu, environment, fix_command, in_turns, timed, wall

PLAIN = Path(__file__).with_name("plain.py")
PROOF = 12
"""Steps that a user would watch, where ``fix`` proves nothing."""


@dataclass(frozen=True)
class Whole:
    """Seconds. ``floor``: torch imported once, the broken program's steps and the proof's: less is impossible."""

    case: str
    fix: float
    broken: float
    fixed: float
    floor: float
    candidates: int
    """Patches that were run."""
    cpu_ratio: float
    status: str
    before: float | None = None
    """``fix`` of another version, measured in turns with this one."""

    @property
    def by_hand(self) -> float:
        return self.broken + self.fixed

    @property
    def ratio(self) -> float:
        return self.fix / self.by_hand


def cases(slugs: Sequence[str], own: bool) -> list[Any]:
    """The corpus' own loader; programs that hang have no time by hand."""
    sys.path.insert(0, str(ROOT / "corpus"))
    import case as loader

    folders = loader.FOLDERS if own or slugs else loader.FOLDERS[:1]
    return [c for c in loader.find(folders, list(slugs)) if not c.hangs]


def imports() -> tuple[float, float]:
    """Seconds to import torch, and to import what the first step of any optimizer does on top."""
    here = Path(tempfile.gettempdir())

    def command(what: str) -> Took:
        return timed([sys.executable, "-c", f"import {what}"], here, environment())

    bare, both = in_turns(3, lambda: command("torch"), lambda: command("torch, torch._dynamo"))
    return wall(bare), wall(both)


def measure(found: Sequence[Any], rounds: int, before: Path | None = None) -> Iterator[Whole]:
    torch_alone, with_first_step = imports()
    for case in found:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            broken, fixed = Path(folder, "broken"), Path(folder, "fixed")
            shutil.copytree(case.before, broken)
            shutil.copytree(case.experts[0] if case.experts else case.before, fixed)
            yield _one(case, broken, fixed, rounds, before, torch_alone, with_first_step)


def _one(case: Any, broken: Path, fixed: Path, rounds: int, before: Path | None, alone: float, both: float) -> Whole:
    args = ["--", *case.args] if case.args else []
    env = environment()
    told = timed(fix_command("fix", "--output-format", "json", case.entry, *args), broken, env)
    outcome = json.loads(told.out)["outcomes"][0]
    failure = (outcome["diagnosis"] or {}).get("failure") or {"steps": 0}
    steps = failure["steps"] + (outcome["proof"]["steps"] or PROOF)
    plain = [sys.executable, str(PLAIN)]
    kind = "backwards" if case.judge_losses else "steps"
    commands = [
        lambda: timed([*plain, "0", kind, case.entry, *case.args], broken, env),
        lambda: timed([*plain, str(steps), kind, case.entry, *case.args], fixed, env),
        lambda: timed(fix_command("fix", case.entry, *args), broken, env),
    ]
    if before is not None:
        commands.append(lambda: timed(fix_command("fix", case.entry, *args, package=before), broken, env))
    first, second, fix, *other = in_turns(rounds, *commands)
    least = alone + max(0.0, wall(first) - (both if failure["steps"] else alone)) + max(0.0, wall(second) - both)
    return Whole(
        case.slug, wall(fix), wall(first), wall(second), least, len(outcome["candidates"]),
        cpu(fix) / (cpu(first) + cpu(second)), outcome["status"], wall(other[0]) if other else None,
    )  # fmt: skip
