"""From a run's JSON to suggestions on a pull request, without trusting the JSON."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import pytest
import samples

from autodetach.report.interface import make

SAFE = samples.BEFORE.replace("zustand)  # 状態", "zustand.detach())  # 状態")


@pytest.fixture
def pull_request(run, tmp_path):
    """A repository whose branch takes the detach out of train.py; returns a call that gives its diff."""

    def git(*words: str) -> bytes:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        return subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True).stdout

    def diff_from(base: str, newline: str = "\n") -> None:
        git("init", "-q", "-b", "main")
        (tmp_path / "train.py").write_bytes(base.replace("\n", newline).encode())
        git("add", ".")
        git("commit", "-qm", "base")
        git("checkout", "-qb", "branch")
        (tmp_path / "train.py").write_bytes(samples.BEFORE.replace("\n", newline).encode())
        git("commit", "-qam", "pull request")
        (tmp_path / "pr.diff").write_bytes(git("diff", "main...branch"))

    return diff_from


def write_result(folder, *outcomes, change=None):
    document = json.loads(make("json").render(*outcomes))
    if change:
        change(document["outcomes"][0])
    (folder / "result.json").write_text(json.dumps(document), encoding="utf-8")


def as_github_commits_it(content: bytes, diagnostics: list[dict]) -> bytes:
    """The suggestion's text in place of its lines, with the file's own line ends."""
    newline = b"\r\n" if b"\r\n" in content else b"\n"
    lines = content.split(newline)
    for one in sorted(diagnostics, key=lambda one: -one["location"]["range"]["start"]["line"]):
        (suggestion,) = one["suggestions"]
        assert suggestion["range"] == one["location"]["range"]
        start, end = suggestion["range"]["start"]["line"], suggestion["range"]["end"]["line"]
        lines[start - 1 : end] = [line.encode() for line in suggestion["text"].split("\n")]
    return newline.join(lines)


def suggest(run):
    result = run("suggest", "result.json", "--diff", "pr.diff", "--summary", "summary.md")
    assert (result.status, result.stderr) == (0, "")
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_suggestion_committed_gives_the_patched_file(run, pull_request, tmp_path, newline):
    pull_request(SAFE, newline)
    before, after = (text.replace("\n", newline).encode() for text in (samples.BEFORE, samples.AFTER))
    from autodetach.source.diff import unified_diff

    diff = unified_diff({"train.py": before}, {"train.py": after})
    write_result(tmp_path, replace(samples.REPAIRED, diff=diff, originals={"train.py": before}))
    diagnostics = suggest(run)
    assert as_github_commits_it(before, diagnostics) == after
    assert (tmp_path / "summary.md").read_text() == ""


def test_the_same_patch_of_two_programs_is_one_suggestion(run, pull_request, tmp_path):
    pull_request(SAFE)
    write_result(tmp_path, samples.REPAIRED, samples.REPAIRED)
    assert len(suggest(run)) == 1


def test_lines_outside_the_pull_request_go_into_the_summary_with_the_patch(run, pull_request, tmp_path):
    pull_request(samples.BEFORE.replace("import torch\n", "import torch  # pinned\n"))
    write_result(tmp_path, samples.REPAIRED)
    assert suggest(run) == []
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    patch = summary.split("````diff\n")[1].split("````")[0]
    assert patch == samples.REPAIRED.diff


def test_a_fault_without_a_patch_is_explained(run, pull_request, tmp_path):
    pull_request(SAFE)
    write_result(tmp_path, samples.UNREPAIRED, samples.CLEAN)
    assert suggest(run) == []
    assert "built-once" in (tmp_path / "summary.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("level", ["unsafe", "display-only", "excellent", None, 3])
def test_only_what_is_marked_safe_becomes_a_suggestion(run, pull_request, tmp_path, level):
    pull_request(SAFE)
    write_result(tmp_path, samples.REPAIRED, change=lambda outcome: outcome["patch"].update(level=level))
    assert suggest(run) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("b/train.py", "b/../../etc/passwd"),
        ("b/train.py", "b//etc/passwd"),
        ("b/train.py", "b/.github/workflows/ci.yml"),
        ("-    zustand", "-    anderes"),
        ("@@ -5,6 +5,6 @@", "@@ -1,6 +1,6 @@"),
        ("@@ -5,6 +5,6 @@", "@@ -5,600 +5,6 @@"),
    ],
)
def test_a_forged_patch_is_no_suggestion(run, pull_request, tmp_path, old, new):
    pull_request(SAFE)

    def forge(outcome):
        assert old in outcome["patch"]["diff"]
        outcome["patch"]["diff"] = outcome["patch"]["diff"].replace(old, new)

    write_result(tmp_path, samples.REPAIRED, change=forge)
    assert suggest(run) == []


def test_free_text_is_no_markup(run, pull_request, tmp_path):
    pull_request(SAFE)
    evil = "`x` @everyone ![](https://example.org/a.png)\n\n# head <img src=x> \x1b[31m ```" + "y" * 10_000

    def forge(outcome):
        outcome["patch"]["summary"] = evil
        outcome["diagnosis"]["explanation"] = outcome["diagnosis"]["failure"]["message"] = evil

    write_result(tmp_path, samples.REPAIRED, change=forge)
    (diagnostic,) = suggest(run)
    before, quoted, after = diagnostic["message"].split("`")
    assert "@everyone" in quoted
    assert not any(sign in before + after for sign in "@!<#")
    assert len(diagnostic["message"]) < 1_000


def test_a_patch_cannot_close_its_fence(run, pull_request, tmp_path):
    pull_request(SAFE)

    def forge(outcome):
        outcome["patch"]["level"] = "unsafe"
        outcome["patch"]["diff"] = outcome["patch"]["diff"].replace("# 状態", "`````")

    write_result(tmp_path, samples.REPAIRED, change=forge)
    suggest(run)
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert [line for line in summary.splitlines() if "``````" in line] == ["``````diff", "``````"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b'{"version": 2, "outcomes": []}',
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"version": 1e999}',
    ],
)
def test_what_is_no_result_is_one_line(run, tmp_path, content):
    (tmp_path / "pr.diff").write_text("")
    (tmp_path / "result.json").write_bytes(content)
    result = run("suggest", "result.json", "--diff", "pr.diff")
    assert result.status == 2
    assert result.stdout == ""
    assert result.stderr.startswith("autodetach: error[usage]: the result is")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("junk", [None, 3, "x", [], {}, {"cause": "carried-state"}, {"cause": ["x"]}])
def test_junk_in_the_right_places_is_passed_over(run, tmp_path, junk):
    (tmp_path / "pr.diff").write_text("")
    for outcome in ({"diagnosis": junk}, {"patch": junk}, junk):
        document = {"version": 1, "outcomes": [outcome]}
        (tmp_path / "result.json").write_text(json.dumps(document))
        assert run("suggest", "result.json", "--diff", "pr.diff").status == 0
