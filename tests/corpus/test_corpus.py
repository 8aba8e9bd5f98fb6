"""The corpus is sound on paper; whether its programs keep their word is for ``corpus/check.py`` to find."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "corpus"
sys.path.insert(0, str(CORPUS))  # its scripts import one another by name, as `python corpus/score.py` does

import baselines  # noqa: E402
import case as cases  # noqa: E402
import check  # noqa: E402
import judge  # noqa: E402
import score  # noqa: E402
import scoreboard  # noqa: E402

ALL = cases.find(cases.FOLDERS)
OWN = [case for case in ALL if case.folder.parent.name == "own"]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.slug)
def test_case_is_well_formed(case: cases.Case) -> None:
    assert check.format_problems(case) == []
    assert case.fails_at


def test_slugs_are_unique() -> None:
    assert len({case.slug for case in ALL}) == len(ALL)


def test_corpus_covers_what_it_promises() -> None:
    assert len(ALL) - len(OWN) == 18
    assert len(OWN) >= 30
    assert sum(bool(case.wrongs) for case in OWN) >= 10
    assert sum(bool(case.max_steps) for case in OWN) >= 3  # programs that never end
    assert any(case.hangs for case in OWN)
    assert {case.answer for case in OWN} == {"patch", "explain"}
    assert {case.error for case in OWN} >= set(cases.WORDINGS)


def test_layout_case_keeps_tabs_and_crlf() -> None:
    [case] = cases.find([CORPUS / "own"], ["targets-requires-grad-tabs"])
    for source in case.before.rglob("*.py"):
        text = source.read_bytes()
        assert text.count(b"\r\n") == text.count(b"\n") > 0
        assert b"\n\t" in text and b"\n    " not in text
    assert " " in case.entry and not case.entry.isascii()


def test_git_leaves_the_cases_as_they_are() -> None:
    path = CORPUS / "own" / "targets-requires-grad-tabs" / "case.toml"
    command = ["git", "check-attr", "text", "--", str(path)]
    try:
        done = subprocess.run(command, cwd=CORPUS, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git work tree")
    assert done.stdout.strip().endswith("text: unset")


def test_no_program_leaves_files_in_the_corpus() -> None:
    for case in ALL:
        names = {p.name for p in case.folder.iterdir()}
        known = {p.name for p in (*case.experts, *case.wrongs)} | {"before", "case.toml"}
        assert names == known, case.slug


def run(steps: list[float], live: list[int] | None = None, losses: list[float] | None = None) -> judge.Trajectory:
    """A trajectory with one parameter."""
    return {
        "ended": True,
        "error": None,
        "steps": [{"params": [value], "grads": [True]} for value in steps],
        "live": live or [],
        "backwards": [{"loss": [value]} for value in losses or []],
    }


def test_judge_says_same_within_its_tolerance() -> None:
    assert judge.compare(run([1.0, 2.0]), run([1.0, 2.00001])) == []
    assert judge.compare(run([1.0, 2.0]), run([1.0, 2.01])) == ["step 2: parameters differ"]
    assert judge.compare(run([1.0]), run([1.0, 2.0])) == ["1 optimizer steps, not 2"]


def test_judge_sees_a_growing_graph() -> None:
    flat, growing = [5] * 8, [5, 9, 13, 17, 21, 25, 29, 33]
    assert judge.compare(run([1.0], growing), run([1.0], flat)) == ["the graph grows from step to step"]
    assert judge.compare(run([1.0], growing), run([1.0], growing)) == []


def test_judge_compares_losses_only_when_asked() -> None:
    got, want = run([], losses=[1.0, 0.5]), run([], losses=[1.0, 0.4])
    assert judge.compare(got, want) == []
    assert judge.compare(got, want, losses=True) == ["backward 2: losses differ"]


def test_failing_place_is_the_innermost_frame_of_the_program(tmp_path: Path) -> None:
    stderr = "\n".join(
        [
            "Traceback (most recent call last):",
            f'  File "{tmp_path.resolve()}/train.py", line 3, in <module>',
            f'  File "{tmp_path.resolve()}/un été/a.py", line 7, in step',
            '  File "/usr/lib/torch/_tensor.py", line 600, in backward',
            "RuntimeError: element 0 of tensors does not require grad",
        ]
    )
    assert check.failing_place(stderr, "does not require grad", tmp_path) == "un été/a.py:7"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("h = f(x)\r\n", "h = f(x).detach()\r\n"),
        ("total += a * b\n", "total += (a * b).detach()\n"),
        ("def f(é):\n\treturn -é\n", "def f(é):\n\treturn (-é).detach()\n"),
    ],
)
def test_anomaly_baseline_detaches_a_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_bytes(before.encode())
    source = baselines.Source("a.py")
    diff = baselines.detach_value(source, len(source.lines))
    assert "".join(source.lines) == after
    assert diff.startswith("--- a/a.py\n+++ b/a.py\n")


def fake_tool(tmp_path: Path, body: str) -> str:
    """A tool of the contract's command line, written on the spot."""
    path = tmp_path / "tool.py"
    path.write_text(body)
    return f"{sys.executable} {path}"


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("import sys; sys.exit('cannot tell')", "abstained"),
        ("import sys; sys.exit(2)", "broken"),
        ("open('train.py', 'a').write('#')", "broken"),
        ("print('--- a/train.py\\n+++ b/train.py\\n@@ -1 +1 @@\\n-no such line\\n+x')", "wrong"),
    ],
)
def test_score_verdicts_that_need_no_run(tmp_path: Path, body: str, verdict: str) -> None:
    [case] = cases.find([CORPUS / "own"], ["char-lm-hidden-tuple"])
    [row] = score.score([case], fake_tool(tmp_path, body))
    assert row.verdict == verdict


def test_score_of_an_explanation(tmp_path: Path) -> None:
    [case] = cases.find([CORPUS / "own"], ["argmax-accuracy-as-loss"])
    [told] = score.score([case], fake_tool(tmp_path, "import sys; sys.exit('argmax has no gradient')"))
    [silent] = score.score([case], fake_tool(tmp_path, "import sys; sys.exit(1)"))
    assert (told.verdict, silent.verdict) == ("correct", "broken")


def test_score_keeps_the_bytes_of_a_patch(tmp_path: Path) -> None:
    """A tool's CRLF lines reach `git apply` as CRLF lines: the patch applies to the layout case."""
    [case] = cases.find([CORPUS / "own"], ["targets-requires-grad-tabs"])
    diff = tmp_path / "fix.diff"
    names = ["--no-index", "--src-prefix=a/", "--dst-prefix=b/", "before", "after"]
    made = subprocess.run(["git", "diff", *names], cwd=case.folder, capture_output=True, check=False)
    diff.write_bytes(made.stdout.replace(b"a/before/", b"a/").replace(b"b/after/", b"b/"))
    copy = f"import sys; sys.stdout.buffer.write(open({str(diff)!r}, 'rb').read())"
    done = score.sh([sys.executable, "-c", copy], tmp_path)
    assert b"\r\n" in done.out
    (tmp_path / "patched").mkdir()
    for path, content in score.snapshot(case.before).items():
        (tmp_path / "patched" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "patched" / path).write_bytes(content)
    (tmp_path / "got.diff").write_bytes(done.out)
    apply = ["git", "apply", "--unsafe-paths", "--directory=", str(tmp_path / "got.diff")]
    applied = score.sh(apply, tmp_path / "patched")
    assert applied.code == 0, applied.err
    assert score.snapshot(tmp_path / "patched") == score.snapshot(case.folder / "after")


def test_sh_stops_what_a_command_leaves_behind(tmp_path: Path) -> None:
    sleeper = "[sys.executable, '-c', 'import time; time.sleep(60)']"
    child = f"import subprocess, sys, time; subprocess.Popen({sleeper})"
    done = score.sh([sys.executable, "-c", f"{child}; time.sleep(60)"], tmp_path, timeout=1.0)
    assert done.code == 124
    assert done.seconds < 30


def test_scoreboard_counts_verdicts() -> None:
    rows = [
        score.Row("a", "built-once", "patch", verdict="correct", seconds=1.0),
        score.Row("b", "built-once", "patch", verdict="wrong", seconds=3.0),
    ]
    text = scoreboard.table("corpus/own", {"autodetach": rows})
    assert text.splitlines()[-1].split() == ["autodetach", "1", "0", "1", "0", "2.0"]
