"""What a user of the command line notices: stdout, stderr, exit status."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import samples

from autodetach import errors

ALL_STATUSES = [
    (samples.CLEAN, 0),
    (samples.REPAIRED, 0),
    (samples.UNREPAIRED, 1),
    (samples.FAILED, 3),
    (samples.NOT_REACHED, 3),
]


@pytest.mark.parametrize(("outcome", "status"), ALL_STATUSES)
def test_exit_status_of_fix(run, pipeline, outcome, status):
    pipeline.answer = outcome
    assert run("fix", "train.py").status == status


def test_fix_prints_the_diff_and_nothing_else_on_stdout(run, pipeline):
    pipeline.answer = samples.REPAIRED
    result = run("fix", "train.py")
    assert result.stdout == samples.REPAIRED.diff
    assert "detach `zustand` where it is stored" in result.stderr
    assert "proved on cpu for 12 optimizer steps under bubblewrap" in result.stderr
    assert "\x1b" not in result.stderr


@pytest.mark.parametrize("outcome", [samples.CLEAN, samples.UNREPAIRED, samples.FAILED, samples.NOT_REACHED])
def test_without_a_patch_stdout_is_empty(run, pipeline, outcome):
    pipeline.answer = outcome
    result = run("fix", "train.py")
    assert result.stdout == ""
    assert result.stderr


def test_the_printed_diff_applies_with_git(run, pipeline, tmp_path):
    pipeline.answer = samples.REPAIRED
    diff = run("fix", "train.py").stdout
    subprocess.run(["git", "apply"], input=diff.encode(), cwd=tmp_path, check=True)
    assert (tmp_path / "train.py").read_text(encoding="utf-8") == samples.AFTER


def test_a_diff_of_a_latin_1_file_comes_out_in_its_own_bytes(run, pipeline, capfdbinary):
    raw = "-# caf\xe9\n".encode("latin-1").decode("utf-8", "surrogateescape")
    pipeline.answer = replace(samples.REPAIRED, diff=raw)
    from autodetach import cli

    cli.run(["fix", "-q", "train.py"])
    assert capfdbinary.readouterr().out == b"-# caf\xe9\n"


@pytest.mark.parametrize(("outcome", "status"), [(samples.REPAIRED, 1), (samples.CLEAN, 0), (samples.UNREPAIRED, 1)])
def test_check_fails_as_soon_as_there_is_anything_to_repair(run, pipeline, outcome, status):
    pipeline.answer = outcome
    assert run("fix", "--check", "train.py").status == status


def test_quiet_says_nothing_but_the_diff(run, pipeline):
    pipeline.answer = samples.REPAIRED
    result = run("fix", "-q", "train.py")
    assert (result.stdout, result.stderr) == (samples.REPAIRED.diff, "")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.UsageError("no such thing"), 2),
        (errors.SourceError("train.py is not Python"), 2),
        (errors.InterpreterError("no torch in /usr/bin/python3"), 2),
        (errors.RunError("could not be started"), 3),
        (errors.RefusedError("no isolation"), 4),
    ],
)
def test_our_errors_are_one_line(run, pipeline, error, status):
    pipeline.answer = error
    result = run("fix", "train.py")
    assert result.status == status
    assert result.stdout == ""
    assert result.stderr == f"autodetach: error[{error.slug}]: {error}\n"


def test_an_error_with_escapes_and_newlines_is_still_one_harmless_line(run, pipeline):
    pipeline.answer = errors.SourceError("bad\nname \x1b]0;owned\x07.py")
    assert run("fix", "train.py").stderr == "autodetach: error[source]: bad name \\x1b]0;owned\\x07.py\n"


def test_a_bug_of_ours_is_one_line_and_a_traceback_only_on_demand(run, pipeline):
    pipeline.answer = ZeroDivisionError("division by zero")
    result = run("fix", "train.py")
    assert result.status == 70
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1
    assert "please report" in result.stderr
    assert "Traceback" in run("fix", "-vv", "train.py").stderr
    assert "Traceback" not in run("fix", "train.py", "--", "-vv").stderr


def test_an_interrupt_is_quiet(run, pipeline):
    pipeline.answer = KeyboardInterrupt()
    result = run("fix", "train.py")
    assert result.status == 130
    assert result.stderr.strip() == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fix"], "name the program"),
        (["fix", "--aply", "train.py"], "--apply"),
        (["fix", "train.py", "--epochs", "3"], "come after --"),
        (["fix", "--steps", "2", "train.py"], "--steps must be a whole number of at least 3, not '2'"),
        (["fix", "--steps", "many", "train.py"], "--steps must be"),
        (["fix", "--timeout", "-1", "train.py"], "--timeout must be"),
        (["fix", "--isolation", "jail", "train.py"], "one of auto, bubblewrap"),
        (["fix", "--output-format", "xml", "train.py"], "one of diff, text, json"),
        (["fix", "--device", "tpu", "train.py"], "auto, cpu, cuda or cuda:N"),
        (["fix", "--check", "--apply", "train.py"], "exclude each other"),
        (["verify", "train.py"], "--patch"),
        (["verify", "train.py", "--patch", "no.diff"], "no.diff cannot be read"),
        (["mend"], "mend"),
    ],
)
def test_usage_errors_are_one_line_and_exit_2(run, pipeline, arguments, said):
    result = run(*arguments)
    assert result.status == 2
    assert result.stdout == ""
    assert result.stderr.startswith("autodetach: error[usage]: ")
    assert result.stderr.count("\n") == 1
    assert said in result.stderr


def test_the_programs_own_arguments_come_after_the_dashes(run, pipeline, tmp_path):
    pipeline.answer = samples.CLEAN
    run("fix", "train.py", "--steps", "5", "--", "--steps", "7", "--", "x")
    assert pipeline.settings[0].script == tmp_path / "train.py"
    assert pipeline.settings[0].args == ("--steps", "7", "--", "x")
    assert pipeline.settings[0].steps == 5


def test_a_module_takes_all_words_as_its_arguments(run, pipeline):
    pipeline.answer = samples.CLEAN
    run("fix", "-m", "project.train", "--", "--epochs", "3")
    assert (pipeline.settings[0].script, pipeline.settings[0].module) == (None, "project.train")
    assert pipeline.settings[0].args == ("--epochs", "3")


def test_explain_tells_the_story_on_stdout(run, pipeline):
    pipeline.answer = samples.UNREPAIRED
    result = run("explain", "train.py")
    assert result.status == 1
    assert "why: built-once" in result.stdout
    assert result.stderr == ""


def test_output_file_leaves_stdout_empty(run, pipeline, tmp_path):
    pipeline.answer = samples.REPAIRED
    assert run("fix", "--output-file", "fix.diff", "train.py").stdout == ""
    assert (tmp_path / "fix.diff").read_text(encoding="utf-8") == samples.REPAIRED.diff
    result = run("fix", "--output-file", "no/where.diff", "train.py")
    assert result.status == 2
    assert result.stderr.endswith("where.diff cannot be written: No such file or directory\n")


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (replace(samples.REPAIRED, trials=(samples.CHOSEN,)), 0),
        (replace(samples.UNREPAIRED, trials=(samples.FALLEN,)), 1),
        (replace(samples.UNREPAIRED, trials=(replace(samples.CHOSEN, level="unsafe"),)), 1),
        (samples.CLEAN, 3),
        (samples.FAILED, 3),
    ],
)
def test_verify_exits_0_only_for_a_safe_patch(run, pipeline, tmp_path, outcome, status):
    (tmp_path / "colleague.diff").write_bytes(b"--- a/x\n+++ caf\xe9\n")
    pipeline.answer = outcome
    assert run("verify", "train.py", "--patch", "colleague.diff").status == status
    assert pipeline.patches[0].encode("utf-8", "surrogateescape") == b"--- a/x\n+++ caf\xe9\n"


def test_verify_shows_every_verdict(run, pipeline, tmp_path):
    (tmp_path / "colleague.diff").write_text("", encoding="utf-8")
    pipeline.answer = replace(samples.UNREPAIRED, trials=(samples.FALLEN,))
    out = run("verify", "train.py", "--patch", "colleague.diff").stdout
    assert "passed runs" in out
    assert "failed nobody starves: no parameter of `läufer` gets a gradient any more" in out


def test_colour_is_forced_and_forbidden_by_the_environment(run, pipeline, monkeypatch):
    pipeline.answer = samples.REPAIRED
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run("fix", "train.py").stderr
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run("fix", "train.py").stderr


def _call(*arguments: str, **options):
    command = [sys.executable, "-m", "autodetach", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def test_version_and_help():
    from autodetach import __version__

    assert _call("--version").stdout == f"autodetach {__version__}\n"
    assert "autodetach fix --apply train.py -- --epochs 3" in _call("--help").stdout
    assert "autodetach fix -m project.train" in _call("fix", "--help").stdout
    alone = _call()
    assert (alone.returncode, alone.stdout) == (2, "")
    assert "Usage: autodetach" in alone.stderr


def test_the_start_is_quick():
    """No torch, libcst or rich, and little processor time: the best of a few, for the machine may be busy."""
    best = min(_seconds_of("--help") for _ in range(5))
    assert best < 0.15 * _slowness()
    code = "import sys, autodetach.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "libcst", "rich", "unidiff"} & set(loaded)


def _seconds_of(*arguments: str) -> float:
    before = os.times()
    assert _call(*arguments).returncode == 0
    after = os.times()
    return (after.children_user + after.children_system) - (before.children_user + before.children_system)


def _slowness() -> float:
    """1 on an ordinary machine, more on a slow one: how long a fixed piece of arithmetic takes."""
    start = time.process_time()
    sum(number * number for number in range(1_000_000))
    return max(1.0, (time.process_time() - start) / 0.1)


def test_a_reader_that_leaves_is_no_error(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, types\n"
        f"sys.path.insert(0, {str(Path(samples.__file__).parent)!r})\n"
        "import samples, dataclasses\n"
        "m = types.ModuleType('autodetach.pipeline')\n"
        "m.fix = lambda *a: dataclasses.replace(samples.REPAIRED, diff='+x\\n' * 100_000)\n"
        "import autodetach\n"
        "sys.modules['autodetach.pipeline'] = autodetach.pipeline = m\n"
    )
    (tmp_path / "train.py").write_text("")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = f"{sys.executable} -m autodetach fix train.py | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "+x\n")
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    command = f"{sys.executable} -m autodetach fix train.py >&-"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    latin = environment | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-m", "autodetach", "fix", "--output-format", "text", "train.py"],
        cwd=tmp_path,
        env=latin,
        capture_output=True,
    )
    assert done.returncode == 0
    assert b"l\\xe4ufer" in done.stdout
