#!/usr/bin/env python3
"""How small the patches are: lines that a tool's patch changes, beside the smallest of the expert's.

    minimality.py KEPT_DIR [CASES_DIR]...

``KEPT_DIR`` is what ``score.py --keep`` left; cases without a patch there are left out. A changed line is one that is
taken out or put in, or one of each: a hunk of two old and three new lines counts three.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import case as cases


def changed_in_diff(diff: str) -> int:
    """The changed lines of a unified diff."""
    count = old = new = 0
    for line in diff.splitlines():
        if line.startswith(("--- ", "+++ ")):
            continue
        if line.startswith("-"):
            old += 1
        elif line.startswith("+"):
            new += 1
        else:
            count, old, new = count + max(old, new), 0, 0
    return count + max(old, new)


def changed_by_expert(folder: Path) -> int:
    """The changed lines of the smallest of the expert's repairs."""
    return min(sum(_changes(folder / "before", after)) for after in sorted(folder.glob("after*")))


def _changes(before: Path, after: Path) -> Iterator[int]:
    names = {p.relative_to(root) for root in (before, after) for p in root.rglob("*") if p.is_file()}
    for name in names:
        old, new = (
            (root / name).read_text(encoding="utf-8", errors="replace").splitlines() if (root / name).is_file() else []
            for root in (before, after)
        )
        yield changed_in_diff("\n".join(difflib.unified_diff(old, new, lineterm="")))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kept", type=Path)
    parser.add_argument("cases", type=Path, nargs="*", default=list(cases.FOLDERS))
    options = parser.parse_args(arguments)
    folders = {f.name: f for root in options.cases for f in sorted(root.iterdir()) if (f / "before").is_dir()}
    rows = []
    for slug, folder in sorted(folders.items()):
        patch = options.kept / slug / "fix.diff"
        diff = patch.read_text(errors="replace") if patch.is_file() else ""
        if re.search(r"^\+\+\+ ", diff, re.MULTILINE):
            rows.append((slug, changed_in_diff(diff), changed_by_expert(folder)))
    for slug, ours, theirs in rows:
        if ours > theirs:
            print(f"{slug:45} {ours} lines, the expert {theirs}")
    fine = sum(ours <= theirs for _, ours, theirs in rows)
    print(
        f"{fine} of {len(rows)} patches change no more lines than the expert's ({100 * fine / max(len(rows), 1):.0f} %)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
