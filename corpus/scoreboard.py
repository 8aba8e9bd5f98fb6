#!/usr/bin/env python3
"""The scoreboard: autodetach and two baselines on the whole corpus.

    scoreboard.py [--jobs N] [--only TOOL]... [--json OUT] [--rows] [CASES_DIR]...

One table for each folder of cases and one for all. Seconds are wall-clock for the tool alone, the median over
the cases; with several jobs they include the crowding.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

import case as cases
from score import VERDICTS, Row, quiet_environment, score

BASELINES = Path(__file__).resolve().with_name("baselines.py")


def tools(python: str) -> dict[str, str]:
    """The contestants by name: each a command that takes ``ENTRY [-- ARGS]``."""
    run = shlex.quote(python)
    baseline = f"{run} {shlex.quote(str(BASELINES))}"
    return {
        "autodetach": f"{run} -m autodetach fix",
        "retain_graph=True": f"{baseline} retain-graph",
        "anomaly mode": f"{baseline} anomaly",
    }


def table(title: str, results: dict[str, list[Row]]) -> str:
    """One line a tool: how many cases got each verdict, and the median time."""
    count = max((len(rows) for rows in results.values()), default=0)
    lines = [f"{title} ({count} cases)"]
    lines.append(f"  {'':<20}" + "".join(f"{verdict:>11}" for verdict in VERDICTS) + f"{'median s':>11}")
    for name, rows in results.items():
        counts = "".join(f"{sum(row.verdict == verdict for row in rows):>11}" for verdict in VERDICTS)
        seconds = median(row.seconds for row in rows) if rows else 0.0
        lines.append(f"  {name:<20}{counts}{seconds:>11.1f}")
    return "\n".join(lines)


def compete(folder: Path, chosen: dict[str, str], python: str, jobs: int, show: bool) -> dict[str, list[Row]]:
    """Score every tool on the cases of one folder."""
    found = cases.find([folder])
    results: dict[str, list[Row]] = {}
    for name, command in chosen.items():
        results[name] = []
        for row in score(found, command, python, jobs=jobs):
            results[name].append(row)
            if show:
                print(f"{name:<20}{row}", flush=True)
            else:
                print(f"\r{folder.name}: {name}: {len(results[name])}/{len(found)} ", end="", file=sys.stderr)
        if not show:
            print(file=sys.stderr)
    return results


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 0 unless autodetach printed a wrong patch or broke."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    contestants = tools(sys.executable)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", action="append", choices=list(contestants), help="these tools alone")
    parser.add_argument("--rows", action="store_true", help="also print each case's verdict")
    parser.add_argument("--json")
    parser.add_argument("folders", nargs="*", type=Path, help="folders of cases; without any: the whole corpus")
    a = parser.parse_args(argv)
    chosen = {name: command for name, command in contestants.items() if not a.only or name in a.only}
    whole: dict[str, list[Row]] = {name: [] for name in chosen}
    tables = []
    folders = a.folders or cases.FOLDERS
    for folder in folders:
        results = compete(folder, chosen, sys.executable, a.jobs, a.rows)
        tables.append(table(f"corpus/{folder.name}", results))
        for name, rows in results.items():
            whole[name] += rows
    if len(folders) > 1:
        tables.append(table("all", whole))
    print("\n\n".join(tables))
    if a.json:
        out = {name: [asdict(row) for row in rows] for name, rows in whole.items()}
        Path(a.json).write_text(json.dumps(out, indent=1))
    return int(any(row.verdict in ("wrong", "broken") for row in whole.get("autodetach", [])))


if __name__ == "__main__":
    quiet_environment()
    sys.exit(main())
