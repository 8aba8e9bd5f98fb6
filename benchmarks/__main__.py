"""Measure and print; with ``--write``, put the tables into docs/performance.md and the picture beside it."""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from benchmarks import growth, report, steps, switches, whole
from benchmarks.measure import ROOT, compiled

PARTS = ("whole", "steps", "switches", "growth")
FEW = ("recurrent-state-on-module", "encoded-dataset-graph", "gradient-penalty-first-order")
PAGE = ROOT / "docs" / "performance.md"
Row = TypeVar("Row")


def main() -> int:
    """0 unless something was not repaired that should have been, or a switch changed what is found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quick", action="store_true", help="one program, the smallest sizes: does it work at all?")
    how.add_argument("--full", action="store_true", help="the largest sizes, too; takes most of an hour")
    parser.add_argument("--only", choices=PARTS, action="append", help="repeatable")
    parser.add_argument("--own", action="store_true", help="also the corpus' own cases")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each, in turns")
    parser.add_argument("--before", type=Path, help="a checkout of another version, measured in turns with this one")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.relative_to(ROOT)}")
    parser.add_argument("slugs", nargs="*", help="only these cases of the corpus")
    a = parser.parse_args()
    parts = a.only or PARTS
    rounds = 1 if a.quick else a.rounds
    size = "quick" if a.quick else "full" if a.full else "usual"
    for package in (ROOT, a.before):
        if package is not None:
            compiled(package)
    begun = time.monotonic()
    found = whole.cases(a.slugs or (FEW[:1] if a.quick else ()), a.own)
    texts: dict[str, str] = {}
    wholes: list[whole.Whole] = []
    same = True
    if "whole" in parts:
        wholes = _shown(whole.measure(found, rounds, a.before))
        texts["whole"] = report.whole(wholes)
    if "steps" in parts:
        texts["steps"] = report.steps(steps.measure(rounds if a.quick else 2 * rounds + 1, a.quick))
    if "switches" in parts:
        few = whole.cases(a.slugs or FEW[: 1 if a.quick else None], a.own)
        flipped = _shown(switches.measure(few, rounds, switches.SWITCHES[-1:] if a.quick else switches.SWITCHES))
        same = all(row.same for row in flipped)
        texts["switches"] = report.switches(flipped)
    if "growth" in parts:
        texts["growth"] = report.growth(_shown(growth.measure(size, 1 if a.quick else min(rounds, 2))))
    print("\n".join(texts.values()))
    print(f"{_machine()}; measured in {time.monotonic() - begun:.0f} s")
    if a.write:
        _write(texts)
        if wholes and not report.picture(wholes, PAGE.with_suffix(".svg")):
            print("no picture: matplotlib is missing; pip install '.[bench]'", file=sys.stderr)
    return 0 if same else 1


def _shown(rows: Iterable[Row] | Iterator[Row]) -> list[Row]:
    """All rows, each told as soon as it is there: a benchmark is watched."""
    kept = []
    for row in rows:
        print(row, file=sys.stderr, flush=True)
        kept.append(row)
    return kept


def _machine() -> str:
    import torch

    return (
        f"Python {platform.python_version()}, PyTorch {torch.__version__}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores, one thread a program"
    )


def _write(texts: dict[str, str]) -> None:
    """Replace what stands between ``<!-- NAME -->`` and ``<!-- end -->``."""
    page = PAGE.read_text(encoding="utf-8")
    for name, text in {**texts, "machine": _machine() + ".\n"}.items():
        page = re.sub(rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda m, t=text: m[1] + t + m[2], page, flags=re.S)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
