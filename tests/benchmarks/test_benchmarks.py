"""The benchmarks run and say what they promise; how long anything takes is no matter of tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_quick_run():
    done = subprocess.run([sys.executable, "-m", "benchmarks", "--quick"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    first = [line.split("|")[1].strip() for line in done.stdout.splitlines() if line.startswith("|")]
    heads, rows = first[::3], first[2::3]
    assert heads == ["program", "net", "without", "what grows"]
    assert rows == ["recurrent-state-on-module", "4 tiny layers", "pairs", "steps before the failure"]
    assert re.search(r"Median ratio \d\.\d\d, worst \d\.\d\d", done.stdout)
    assert "NO" not in done.stdout and "Median number of patches run: 1." in done.stdout


@pytest.mark.parametrize(("power", "constant"), [(1.0, 0.0), (2.0, 0.0), (1.0, 1e-3), (0.0, 1.0)])
def test_an_exponent(power, constant, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.measure import exponent

    sizes = [10, 100, 1000, 10_000]
    assert exponent(sizes, [constant + n**power for n in sizes]) == pytest.approx(power, abs=0.05)


def test_the_page_has_a_place_for_every_table():
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    for name in ("whole", "steps", "switches", "growth", "machine"):
        assert re.search(rf"<!-- {name} -->\n(.+\n)+?(.*\n)*?<!-- end -->", page), name
