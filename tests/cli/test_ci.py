"""The programs of a project, one after the other, side by side, and in parts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import samples

from autodetach.errors import InterpreterError

PROGRAMS = """
[tool.autodetach]
steps = 5
[[tool.autodetach.programs]]
script = "train.py"
args = ["--epochs", "1"]
[[tool.autodetach.programs]]
module = "project.pretrain"
steps = 6
[[tool.autodetach.programs]]
script = "eval.py"
"""


@pytest.fixture
def project(run, tmp_path):
    (tmp_path / "pyproject.toml").write_text(PROGRAMS)
    return tmp_path


def test_exit_1_if_any_needs_repair(run, pipeline, project):
    pipeline.answer = samples.CLEAN
    assert run("ci").status == 0
    pipeline.answer = samples.REPAIRED
    result = run("ci")
    assert result.status == 1
    assert result.stdout == samples.REPAIRED.diff
    pipeline.answer = samples.NOT_REACHED
    assert run("ci").status == 3


def test_each_program_has_its_settings(run, pipeline, project):
    pipeline.answer = samples.CLEAN
    result = run("ci", "--timeout", "9")
    assert [one.steps for one in pipeline.settings] == [5, 6, 5]
    assert {one.timeout for one in pipeline.settings} == {9}
    assert pipeline.settings[0].args == ("--epochs", "1")
    assert [line for line in result.stderr.splitlines() if line.startswith("autodetach: ")] == [
        "autodetach: train.py: clean",
        "autodetach: -m project.pretrain: clean",
        "autodetach: eval.py: clean",
    ]


def test_shards_cover_every_program_once(run, pipeline, project):
    pipeline.answer = samples.CLEAN
    for shard in ("1/2", "2/2", "4/4"):
        assert run("ci", "--shard", shard).status == 0
    assert [one.program for one in pipeline.settings] == ["train.py", "eval.py", "-m project.pretrain"]


def test_a_program_that_cannot_be_run_stops_no_other(run, pipeline, project):
    pipeline.answer = InterpreterError("no torch")
    result = run("ci", "-q")
    assert result.status == 2
    assert result.stderr.count("error[interpreter]: no torch\n") == 3
    assert len(pipeline.settings) == 3


def test_several_formats_at_once(run, pipeline, project):
    pipeline.answer = samples.REPAIRED
    result = run("ci", "--output-format", "github", "--write", "json=a.json", "--write", "sarif=b.sarif")
    assert result.stdout.startswith("::error file=train.py")
    assert len(json.loads((project / "a.json").read_text(encoding="utf-8"))["outcomes"]) == 3
    assert len(json.loads((project / "b.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--shard", "3/2"], "--shard must be K/N"),
        (["--shard", "x"], "--shard must be K/N"),
        (["--write", "json"], "--write must be FORMAT=FILE"),
        (["--write", "xml=a"], "--write must be FORMAT=FILE"),
        (["--jobs", "0"], "--jobs"),
    ],
)
def test_wrong_usage_runs_nothing(run, pipeline, project, arguments, said):
    result = run("ci", *arguments)
    assert result.status == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert not pipeline.settings


def test_side_by_side(tmp_path):
    """Two real worker processes, whose pipeline answers what its program's name says."""
    (tmp_path / "pyproject.toml").write_text(PROGRAMS)
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, types\n"
        f"sys.path.insert(0, {str(Path(samples.__file__).parent)!r})\n"
        "import samples, autodetach\n"
        "m = types.ModuleType('autodetach.pipeline')\n"
        "m.fix = lambda settings, progress: samples.REPAIRED if settings.module else samples.CLEAN\n"
        "sys.modules['autodetach.pipeline'] = autodetach.pipeline = m\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "autodetach", "ci", "--jobs", "2", "--output-format", "json"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert [one["status"] for one in json.loads(done.stdout)["outcomes"]] == ["clean", "repaired", "clean"]
    assert "Traceback" not in done.stderr


def test_an_interrupt_ends_all_of_them_quietly(tmp_path):
    (tmp_path / "pyproject.toml").write_text(PROGRAMS)
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, time, types, pathlib, autodetach\n"
        "def fix(settings, progress):\n"
        "    pathlib.Path('began').touch()\n"
        "    time.sleep(120)\n"
        "m = types.ModuleType('autodetach.pipeline')\n"
        "m.fix = fix\n"
        "sys.modules['autodetach.pipeline'] = autodetach.pipeline = m\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "autodetach", "ci", "--jobs", "2"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while not (tmp_path / "began").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said.strip() == ""
