"""Score generated cases and tell the result by cause and by axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import case as cases
from score import VERDICTS, Row, score


def score_folder(top: Path, tool: str, jobs: int, keep: str | None = None) -> list[Row]:
    """Score all cases below ``top``, one line printed for each."""
    rows = []
    for row in score(cases.find([top]), tool, keep=keep, jobs=jobs):
        print(row, flush=True)
        rows.append(row)
    return rows


def table(title: str, keys: Iterable[tuple[str, Row]]) -> str:
    """Verdicts by key; a key without a miss is told, too: it says where the tool is good."""
    counts: dict[str, Counter[str]] = {}
    for key, row in keys:
        counts.setdefault(key, Counter())[row.verdict] += 1
    width = max((len(key) for key in counts), default=0) + 2
    lines = [f"{title:<{width}}" + "".join(f"{verdict:>11}" for verdict in VERDICTS)]
    for key, found in sorted(counts.items()):
        lines.append(f"{key:<{width}}" + "".join(f"{found[verdict] or '.':>11}" for verdict in VERDICTS))
    return "\n".join(lines)


def report(top: Path, rows: list[Row]) -> str:
    """Tables by cause and scenario and by every other axis, and the share of each verdict."""
    tags = {case.slug: [tag.partition("=") for tag in case.tags] for case in cases.find([top])}
    said = {slug: {(name, value) for name, _, value in found} for slug, found in tags.items()}
    parts = [table("cause", ((row.cause, row) for row in rows))]
    named = {row.case: dict(sorted(said[row.case])) for row in rows}
    parts.append(table("scenario", ((f"{named[r.case]['cause']}/{named[r.case]['scenario']}", r) for r in rows)))
    for axis in ("holder", "container", "depth", "place", "model", "optimizer", "extras", "layout", "files", "styles"):
        keys = ((value, row) for row in rows for name, value in sorted(said[row.case]) if name == axis)
        parts.append(table(axis, keys))
    total = Counter(row.verdict for row in rows)
    shares = ", ".join(f"{total[verdict]} {verdict}" for verdict in VERDICTS)
    return "\n\n".join([*parts, f"{len(rows)} cases: {shares}"])
