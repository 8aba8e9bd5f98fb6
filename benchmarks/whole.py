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
    """Seconds; shares are of the two runs by hand. ``cpu_least``: torch imported once, the broken program's steps and
    the proof's, as a share of processor time: nothing that runs a proof can take less."""

    case: str
    fix: float
    broken: float
    fixed: float
    cpu_least: float
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
    """Processor seconds to import torch, and to import what the first optimizer does on top."""
    here = Path(tempfile.gettempdir())

    def command(what: str) -> Took:
        return timed([sys.executable, "-c", f"import {what}"], here, environment())

    bare, both = in_turns(3, lambda: command("torch"), lambda: command("torch, torch._dynamo"))
    return cpu(bare), cpu(both)


def measure(found: Sequence[Any], rounds: int, before: Path | None = None) -> Iterator[Whole]:
    torch_alone, with_optimizer = imports()
    for case in found:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            broken, fixed = Path(folder, "broken"), Path(folder, "fixed")
            shutil.copytree(case.before, broken)
            shutil.copytree(case.experts[0] if case.experts else case.before, fixed)
            yield _one(case, broken, fixed, rounds, before, torch_alone, with_optimizer)


def _one(case: Any, broken: Path, fixed: Path, rounds: int, before: Path | None, alone: float, both: float) -> Whole:
    args = ["--", *case.args] if case.args else []
    env = environment()
    told = timed(fix_command("fix", "--output-format", "json", case.entry, *args), broken, env)
    outcome = json.loads(told.out)["outcomes"][0]
    failure = (outcome["diagnosis"] or {}).get("failure") or {"steps": 0}
    steps = failure["steps"] + (outcome["proof"]["steps"] or PROOF)
    plain = [sys.executable, str(PLAIN)]
    kind = "backwards" if case.judge_losses else "steps"
    by_hand = [
        lambda: timed([*plain, "0", kind, case.entry, *case.args], broken, env),
        lambda: timed([*plain, str(steps), kind, case.entry, *case.args], fixed, env),
    ]
    if before is not None:
        by_hand.append(lambda: timed(fix_command("fix", case.entry, *args, package=before), broken, env))
    first, second, *other = in_turns(1, *by_hand)
    fix = [told]
    for _ in range(rounds - 1):
        fix.append(timed(fix_command("fix", case.entry, *args), broken, env))
        for column, command in zip((first, second, *other), by_hand, strict=True):
            column.append(command())
    cpu_by_hand = cpu(first) + cpu(second)
    least = alone + max(0.0, cpu(first) - both) + max(0.0, cpu(second) - both)
    return Whole(
        case.slug, wall(fix), wall(first), wall(second), least / cpu_by_hand, len(outcome["candidates"]),
        cpu(fix) / cpu_by_hand, outcome["status"], wall(other[0]) if other else None,
    )  # fmt: skip
