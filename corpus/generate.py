#!/usr/bin/env python3
"""Generate cases: healthy training programs from a grammar, each broken by taking one thing out.

    generate.py [--seed N] [--count N | --size ci|nightly] [--cause CAUSE]... OUT_DIR
    generate.py --score [--jobs N] [--json OUT] [--minimise-failures] OUT_DIR
    generate.py --minimise SLUG OUT_DIR                      the smallest case with the same verdict

Every case is proven by running it (before/ fails as stated, after*/ train alike) and has its axes in case.toml.
The same seed gives the same cases.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from generator.axes import Impossible
from generator.causes import CAUSES
from generator.compose import attempts, compose
from generator.forge import Forge
from generator.minimise import minimise
from generator.proof import Unfit, prove
from generator.scoring import report, score_folder
from generator.write import write_case
from score import quiet_environment

SIZES = {"ci": 30, "nightly": 500}


def generate(seed: int, count: int, top: Path, causes: tuple[str, ...] = ()) -> Counter[str]:
    """Write ``count`` proven cases below ``top``; returns why other points of the space were skipped."""
    forge = Forge()
    skipped: Counter[str] = Counter()
    try:
        for number in range(count):
            for axes in attempts(seed, number, causes):
                try:
                    write_case(prove(compose(axes), forge), number, top)
                    break
                except (Impossible, Unfit) as reason:
                    skipped[f"{axes.cause}/{axes.scenario}: {type(reason).__name__}: {reason}"] += 1
    finally:
        forge.close()
    return skipped


def shrink(top: Path, slugs: list[str], tool: str) -> int:
    """Print the minimal case of each slug."""
    for slug in slugs:
        print(f"== {slug}\n{minimise(top / slug, tool, sys.executable)}\n", flush=True)
    return 0


def main() -> int:
    """The command line; with --score, 0 when no case is wrong or broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int)
    parser.add_argument("--size", choices=sorted(SIZES), default="ci")
    parser.add_argument("--cause", action="append", default=[], choices=sorted(CAUSES))
    parser.add_argument("--skipped", action="store_true", help="say which points of the space were skipped, and why")
    parser.add_argument("--score", action="store_true", help="score the cases; those that lie there, if there are any")
    parser.add_argument("--minimise", metavar="SLUG", action="append", default=[])
    parser.add_argument("--minimise-failures", action="store_true", help="with --score: minimise what is not correct")
    parser.add_argument("--tool", default="autodetach fix")
    parser.add_argument("--jobs", type=int, default=1, help="cases scored at the same time")
    parser.add_argument("--keep", help="keep each scored case's files below this folder")
    parser.add_argument("--json", type=Path, help="write the verdicts there")
    parser.add_argument("out", type=Path)
    a = parser.parse_args()
    if a.minimise:
        return shrink(a.out, a.minimise, a.tool)
    if not a.score or not any(a.out.glob("*/case.toml")):
        start = time.perf_counter()
        count = a.count or SIZES[a.size]
        skipped = generate(a.seed, count, a.out, tuple(a.cause))
        made = sum(1 for _ in a.out.glob("*/case.toml"))
        print(f"{made} cases in {time.perf_counter() - start:.0f} s; {sum(skipped.values())} points skipped")
        for reason, times in skipped.most_common() if a.skipped else ():
            print(f"{times:>5} {reason}")
    if not a.score:
        return 0
    rows = score_folder(a.out, a.tool, a.jobs, a.keep)
    print(report(a.out, rows))
    if a.json:
        a.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    if a.minimise_failures:
        shrink(a.out, [row.case for row in rows if row.verdict != "correct"], a.tool)
    return int(any(row.verdict in ("wrong", "broken") for row in rows))


if __name__ == "__main__":
    quiet_environment()
    sys.exit(main())
