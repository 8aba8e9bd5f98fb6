"""--apply writes what was analysed and nothing else, and asks git first."""

from __future__ import annotations

import subprocess

import pytest
import samples


@pytest.fixture
def repository(run, tmp_path):
    def git(*words: str) -> None:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "start")
    return git


def text(folder):
    return (folder / "train.py").read_text(encoding="utf-8")


def test_outside_a_repository(run, pipeline, tmp_path):
    pipeline.answer = samples.REPAIRED
    result = run("fix", "--apply", "train.py")
    assert result.status == 0
    assert text(tmp_path) == samples.AFTER
    assert result.stdout == samples.REPAIRED.diff
    assert result.stderr.endswith("autodetach: applied to train.py\n")


def test_without_apply_nothing_is_written(run, pipeline, tmp_path):
    pipeline.answer = samples.REPAIRED
    run("fix", "train.py")
    assert text(tmp_path) == samples.BEFORE


def test_in_a_clean_repository(run, pipeline, repository, tmp_path):
    (tmp_path / "other.py").write_text("uncommitted, but not touched")
    pipeline.answer = samples.REPAIRED
    assert run("fix", "--apply", "train.py").status == 0
    assert text(tmp_path) == samples.AFTER


@pytest.mark.parametrize("staged", [False, True])
def test_uncommitted_changes_are_refused_with_the_diff_shown(run, pipeline, repository, tmp_path, staged):
    (tmp_path / "train.py").write_text(samples.BEFORE + "# mine\n", encoding="utf-8")
    if staged:
        repository("add", "train.py")
    pipeline.answer = samples.REPAIRED
    result = run("fix", "-q", "--apply", "train.py")
    assert result.status == 4
    assert result.stdout == samples.REPAIRED.diff
    assert result.stderr == (
        "autodetach: error[refused]: uncommitted changes in train.py: commit them, or give --allow-dirty\n"
    )
    assert text(tmp_path) == samples.BEFORE + "# mine\n"


def test_allow_dirty(run, pipeline, repository, tmp_path):
    repository("rm", "-q", "--cached", "train.py")
    pipeline.answer = samples.REPAIRED
    assert run("fix", "--apply", "train.py").status == 4
    assert run("fix", "--apply", "--allow-dirty", "train.py").status == 0
    assert text(tmp_path) == samples.AFTER


def test_a_file_that_changed_since_the_analysis_is_refused(run, pipeline, tmp_path):
    (tmp_path / "train.py").write_text("print('changed meanwhile')\n")
    pipeline.answer = samples.REPAIRED
    result = run("fix", "-q", "--apply", "train.py")
    assert result.status == 4
    assert result.stderr.startswith("autodetach: error[refused]: ")
    assert text(tmp_path) == "print('changed meanwhile')\n"


def test_from_a_folder_inside_the_project(run, pipeline, repository, tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    pipeline.answer = samples.REPAIRED
    assert run("fix", "-q", "--apply", "../train.py").status == 0
    assert text(tmp_path) == samples.AFTER


def test_without_a_patch_nothing_is_applied(run, pipeline, tmp_path):
    pipeline.answer = samples.UNREPAIRED
    assert run("fix", "--apply", "train.py").status == 1
    assert text(tmp_path) == samples.BEFORE
