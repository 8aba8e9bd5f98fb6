"""Each way of being faster, on and off in turns, on a few programs; what is found must be the same either way."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Took, environment, fix_command, in_turns, timed

SWITCHES = ("server", "imports", "dynamo", "early", "sure", "pairs")


@dataclass(frozen=True)
class Switch:
    """``ratio``: how many times as long ``fix`` takes without it, the median over the programs."""

    name: str
    ratio: float
    same: bool


def measure(found: Sequence[Any], rounds: int, names: Sequence[str] = SWITCHES) -> Iterator[Switch]:
    for name in names:
        ratios, same = [], True
        for case in found:
            on, off = _one(case, rounds, name)
            ratios.append(median(b.wall / a.wall for a, b in zip(on, off, strict=True)))
            same = same and len({_found(t) for t in (*on, *off)}) == 1
        yield Switch(name, median(ratios), same)


def _one(case: Any, rounds: int, name: str) -> list[list[Took]]:
    with tempfile.TemporaryDirectory(prefix="bench-") as parent:
        folder = Path(parent, "program")
        shutil.copytree(case.before, folder)
        args = ["--", *case.args] if case.args else []
        command = fix_command("fix", "--output-format", "json", case.entry, *args)
        without = environment(AUTODETACH_WITHOUT=name)
        return in_turns(rounds, lambda: timed(command, folder, environment()), lambda: timed(command, folder, without))


def _found(took: Took) -> str:
    """What was found, without what the clock decides: seconds, and how many steps there was time to prove."""
    outcome = json.loads(took.out)["outcomes"][0]
    tried = [
        (one["diff"], one["level"], [(v["criterion"], v["passed"]) for v in one["verdicts"]])
        for one in outcome["candidates"]
    ]
    return json.dumps([outcome["status"], outcome["diagnosis"], outcome["patch"], tried])
