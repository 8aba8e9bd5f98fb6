"""The whole way on a repository of its own: a pull request, its programs run, the suggestion taken, all well."""

from __future__ import annotations

import json
import subprocess

import pytest

PYPROJECT = """\
[tool.autodetach]
timeout = 60
write = ["json=result.json"]

[[tool.autodetach.programs]]
script = "läufe/train.py"
args = ["--weeks", "12"]
data = ["{data}"]

[[tool.autodetach.programs]]
module = "läufe.prüfen"
timeout = 30
device = "cpu"
"""
TRAIN = """\
import argparse
import sys
from pathlib import Path

import torch
from torch import nn

# Übungsläufe: der Zustand wandert von Woche zu Woche
parser = argparse.ArgumentParser()
parser.add_argument("--weeks", type=int, default=5000)
weeks = parser.parse_args().weeks
numbers = torch.tensor([float(x) for x in Path("{data}").read_text().split()])
torch.manual_seed(0)
läufer = nn.GRUCell(1, 8)
kopf = nn.Linear(8, 1)
öffner = torch.optim.SGD([*läufer.parameters(), *kopf.parameters()], lr=0.1)
zustand = torch.zeros(1, 8)
for woche in range(weeks):
    zustand = läufer(numbers[woche % 4].view(1, 1), zustand)  # 状態
    größe = (kopf(zustand) - 1).pow(2).mean()
    öffner.zero_grad()
    größe.backward()
    öffner.step()
"""
CLEAN = "import torch\nw = torch.ones(2, requires_grad=True)\n(w * w).sum().backward()\n"


@pytest.fixture
def repository(tmp_path):
    """Its main has the detach; the branch that is checked out takes it away. The data lie elsewhere."""
    data = tmp_path / "data" / "zahlen.txt"
    data.parent.mkdir()
    data.write_text("0.1 0.2 0.3 0.4")
    folder = tmp_path / "repository"
    right = TRAIN.replace("zustand)  # 状態", "zustand.detach())  # 状態")

    def git(*words):
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True).stdout

    (folder / "läufe").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT.replace("{data}", str(data.parent)), encoding="utf-8")
    (folder / "läufe" / "prüfen.py").write_text(CLEAN)
    (folder / ".gitignore").write_text("result.json\npr.diff\n")
    (folder / "läufe" / "train.py").write_text(right.replace("{data}", str(data)), encoding="utf-8")
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "base")
    git("checkout", "-qb", "branch")
    (folder / "läufe" / "train.py").write_text(TRAIN.replace("{data}", str(data)), encoding="utf-8")
    git("commit", "-qam", "pull request")
    (folder / "pr.diff").write_bytes(git("diff", "main...branch"))
    return folder, git


def as_github_commits_it(content, suggestion):
    lines = content.split("\n")
    start, end = suggestion["range"]["start"]["line"], suggestion["range"]["end"]["line"]
    lines[start - 1 : end] = suggestion["text"].split("\n")
    return "\n".join(lines)


def test_from_the_pull_request_to_the_commit_that_repairs_it(repository, command):
    folder, git = repository
    said = command(folder, "ci", "--output-format", "github")
    assert said.status == 1, said.stderr
    assert "autodetach: läufe/train.py: repaired\nautodetach: -m läufe.prüfen: clean" in said.stderr
    assert said.stdout.startswith("::error ") and "file=läufe/train.py" in said.stdout
    document = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert [one["status"] for one in document["outcomes"]] == ["repaired", "clean"]

    said = command(folder, "suggest", "result.json", "--diff", "pr.diff")
    assert said.status == 0, said.stderr
    (diagnostic,) = map(json.loads, said.stdout.splitlines())
    assert diagnostic["location"]["path"] == "läufe/train.py"
    (suggestion,) = diagnostic["suggestions"]

    train = folder / "läufe" / "train.py"
    committed = as_github_commits_it(train.read_text(encoding="utf-8"), suggestion)
    patch = document["outcomes"][0]["patch"]["diff"].encode()
    subprocess.run(["git", "apply"], input=patch, cwd=folder, check=True)
    assert train.read_text(encoding="utf-8") == committed

    git("commit", "-qam", "suggestion")
    said = command(folder, "ci", "-q")
    assert (said.status, said.stdout) == (0, "")


def test_a_shard_that_has_only_the_clean_one_is_clean(repository, command):
    folder, _ = repository
    said = command(folder, "ci", "--shard", "2/2", "--write", "sarif=out.sarif")
    assert said.status == 0, said.stderr
    assert json.loads((folder / "out.sarif").read_text())["runs"][0]["results"] == []
