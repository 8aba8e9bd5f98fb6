"""Each way of being faster, left out: the same is found, in the same words."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autodetach import pipeline
from autodetach.model import Outcome, Status
from autodetach.progress import Silent
from autodetach.runner.project import Project
from autodetach.runner.session import Session
from autodetach.settings import SPEEDUPS, Settings

PROGRAM = """
import networkx
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
cell, head = nn.RNNCell(2, 3), nn.Linear(3, 1)
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=0.1)
h = torch.zeros(1, 3)
for _ in range(20):
    h = checkpoint(cell, torch.randn(1, 2), h, use_reentrant=False)
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
"""Imports a package, and uses the compiler's package without being compiled."""


def found(folder, *without: str) -> tuple[Outcome, object]:
    """The outcome, and what of it the clock does not decide: that is seconds, and how many steps there was time for."""
    outcome = pipeline.fix(Settings(cwd=folder, script=folder / "train.py", without=without), Silent())
    # of a wrong patch it is told why it is wrong: whichever was seen first
    passed = [[v.criterion for v in t.verdicts] if t.level is not None else None for t in outcome.trials]
    tried = [(t.diff, t.level) for t in outcome.trials], passed
    return outcome, (outcome.status, outcome.diagnosis, outcome.diff, tried)


@pytest.fixture(scope="module")
def with_all(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    folder.joinpath("train.py").write_text(PROGRAM)
    return folder, found(folder)


def test_with_all_of_them(with_all):
    _, (outcome, _) = with_all
    assert outcome.status is Status.REPAIRED and "h.detach()" in outcome.diff


def test_several_patches_one_after_the_other_or_two_at_once(tmp_path):
    case = (
        Path(__file__).parents[1] / "corpus/cases/preallocated-predictions/before"
    )  # of its smallest patches two fail
    shutil.copytree(case, tmp_path, dirs_exist_ok=True)
    outcome, what = found(tmp_path)
    assert outcome.status is Status.REPAIRED and len(outcome.trials) > 2
    assert found(tmp_path, "pairs", "sure")[1] == what


@pytest.mark.parametrize("name", ["dynamo", "all"])  # each by itself: python -m benchmarks --only switches
def test_without_one_of_them(with_all, name):
    folder, (_, what) = with_all
    assert found(folder, *(SPEEDUPS if name == "all" else [name]))[1] == what


def test_an_unknown_one_is_refused(tmp_path, capfd, monkeypatch):
    from autodetach.cli import run

    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("train.py").touch()
    monkeypatch.setenv("AUTODETACH_WITHOUT", "magic")
    assert run(["fix", "train.py"]) == 2
    assert "AUTODETACH_WITHOUT must be a list of server, imports, dynamo, early, sure, pairs" in capfd.readouterr().err


def test_our_own_work_is_done_while_the_interpreter_starts(tmp_path):
    tmp_path.joinpath("train.py").write_text("print(1)\n")
    server = tmp_path / "server.py"
    server.write_text(
        "import json, sys, time, pathlib\n"
        f"while not pathlib.Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.01)\n"
        "print(json.dumps({'ready': True, 'python': '3', 'torch': '2', 'cuda': None}), flush=True)\nsys.stdin.read()\n"
    )
    project = Project.discover(tmp_path / "train.py", None, tmp_path)
    go = tmp_path / "go"  # the server is not ready before it is there
    with Session(Path(sys.executable), project, isolation="none", meanwhile=go.touch, serve=server) as session:
        assert session.info.torch == "2"


def test_what_is_heavy_is_not_loaded_at_the_start():
    heavy = {"libcst", "rich", "torch", "unidiff", "autodetach.pipeline"}
    script = (
        "import sys\nfrom autodetach import cli\n"
        "status = cli.run(sys.argv[1:])\nprint(json.dumps([status, sorted(sys.modules)]), file=sys.stderr)"
    )
    for words in (["--version"], ["--help"], ["fix", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", "import json\n" + script, *words], capture_output=True, text=True, check=True
        )
        status, loaded = json.loads(done.stderr)
        assert status == 0 and not heavy & set(loaded)


def test_the_pipeline_starts_without_what_edits_source():
    script = "import sys, autodetach.pipeline; print('libcst' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"


def test_files_that_are_links_to_the_original_are_repaired_too(analyse, monkeypatch):
    """Of a project of very many files not all are copied."""
    model = "from torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    model += "        self.cell, self.h = nn.RNNCell(2, 3), None\n\n    def forward(self, x):\n"
    model += "        self.h = self.cell(x, self.h)\n        return self.h\n"
    train = "import torch\nfrom model import Net\n\nnet = Net()\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    train += "for _ in range(20):\n    loss = net(torch.randn(1, 2)).sum()\n    opt.zero_grad()\n    loss.backward()\n"
    files = {"train.py": train + "    opt.step()\n", "model.py": model}
    copied = analyse(files)
    monkeypatch.setattr("autodetach.runner.listing._MOST_FILES_COPIED", 0)
    linked = analyse(files)
    assert copied.status is linked.status is Status.REPAIRED
    assert copied.diff == linked.diff != ""
