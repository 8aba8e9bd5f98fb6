"""The measurements as Markdown tables, and as a picture where matplotlib is at hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from benchmarks.growth import Growth
from benchmarks.steps import Step
from benchmarks.switches import Switch
from benchmarks.whole import Whole


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)]) + "\n"


def whole(rows: Sequence[Whole]) -> str:
    if not rows:
        return ""
    before = any(r.before for r in rows)
    head = [
        "program",
        "`fix`, s",
        "broken + repaired, s",
        "ratio",
        "in processor time",
        "least possible",
        "patches run",
    ]
    body = [
        [
            r.case,
            f"{r.fix:.2f}",
            f"{r.broken:.2f} + {r.fixed:.2f}",
            f"{r.ratio:.2f}",
            f"{r.cpu_ratio:.2f}",
            f"{r.cpu_least:.2f}",
            r.candidates,
        ]
        + ([f"{r.fix / r.before:.2f}" if r.before else ""] if before else [])
        for r in sorted(rows, key=lambda r: r.ratio)
    ]
    ratios = [r.ratio for r in rows]
    tail = (
        f"\nMedian ratio {median(ratios):.2f}, worst {max(ratios):.2f}; in processor time "
        f"{median(r.cpu_ratio for r in rows):.2f}. Median number of patches run: "
        f"{median(r.candidates for r in rows if r.candidates) if any(r.candidates for r in rows) else 0:g}.\n"
    )
    if before:
        tail += f"\nAgainst the other version: median {median(r.fix / r.before for r in rows if r.before):.2f}.\n"
    return _table(head + (["to before"] if before else []), body) + tail


def steps(rows: Sequence[Step]) -> str:
    head = ["net", "plain, ms a step", "recorded", "reference run", "anomaly mode"]
    return _table(
        head,
        [[r.net, f"{r.plain:.2f}", f"{r.recorder:.2f} ×", f"{r.reference:.2f} ×", f"{r.anomaly:.2f} ×"] for r in rows],
    )


def switches(rows: Sequence[Switch]) -> str:
    return _table(
        ["without", "`fix` takes", "finds the same"],
        [[r.name, f"{r.ratio:.2f} ×", "yes" if r.same else "NO"] for r in rows],
    )


def growth(rows: Sequence[Growth]) -> str:
    def size(number: int) -> str:
        for unit, amount in (("GiB", 1 << 30), ("MiB", 1 << 20)):
            if number >= amount and number % amount == 0:
                return f"{number // amount} {unit}"
        return f"{number:,}".replace(",", " ")

    return _table(
        ["what grows", "size: seconds", "exponent"],
        [
            [
                r.what,
                ", ".join(f"{size(n)}: {t:.1f}" for n, t in zip(r.sizes, r.seconds, strict=True)),
                f"{r.exponent:.2f}",
            ]
            for r in rows
        ],
    )


def picture(rows: Sequence[Whole], file: Path) -> bool:
    """A bar for each program; False without matplotlib (the optional group ``bench``)."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "autodetach"
    from matplotlib import pyplot

    shown = sorted(rows, key=lambda r: r.cpu_ratio, reverse=True)
    figure, axes = pyplot.subplots(figsize=(7.5, 0.28 * len(shown) + 1.2), layout="constrained")
    places = range(len(shown))
    axes.barh(places, [r.cpu_ratio for r in shown], color="#4c78a8", label="autodetach fix, processor time")
    axes.plot([r.cpu_least for r in shown], places, "k|", markersize=9, label="least possible")
    axes.axvline(1, color="#888888", linewidth=1)
    axes.set_yticks(places, [r.case for r in shown], fontsize=7)
    axes.set_xlabel("processor time, as a share of one broken and one repaired run by hand")
    axes.legend(loc="lower right", fontsize=7, frameon=False)
    figure.savefig(file, metadata={"Date": None})
    return True
