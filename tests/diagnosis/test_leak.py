"""Graphs that grow without any error: found where asked for, and let go where the values are kept."""

from __future__ import annotations

import pytest

from autodetach.model import Cause, FailureKind, Level, Status
from autodetach.source.diff import read_patch

HEAD = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
LOOP = "for i in range(60):\n    loss = net(torch.randn(4, 3)).pow(2).mean()\n"
TRAIN = "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
LEAKING = {
    "a running total": ("total = 0\n" + LOOP + TRAIN + "@@", "    total += loss\n", "    total += loss.detach()\n"),
    "a moving mean": (
        "mean = 0\n" + LOOP + TRAIN + "@@",
        "    mean = 0.9 * mean + 0.1 * loss\n",
        "    mean = 0.9 * mean + 0.1 * loss.detach()\n",
    ),
    "a list": ("seen = []\n" + LOOP + TRAIN + "@@", "    seen.append(loss)\n", "    seen.append(loss.detach())\n"),
    "a dictionary in a method": (
        "class Log:\n    def __init__(self):\n        self.rows = {}\n    def add(self, key, value):\n@@"
        "log = Log()\n" + LOOP + TRAIN + "    log.add(i, loss)\n",
        "        self.rows[key] = value\n",
        "        self.rows[key] = value.detach()\n",
    ),
}


@pytest.mark.parametrize("name", LEAKING)
def test_what_is_kept_is_kept_detached(analyse, name):
    body, old, new = LEAKING[name]
    before = HEAD + body.replace("@@", old)
    outcome = analyse(before, leaks=True)
    assert outcome.status is Status.REPAIRED, (outcome.diagnosis, outcome.trials)
    assert outcome.diagnosis.cause is Cause.GRAPH_KEPT and outcome.diagnosis.failure.kind is FailureKind.GROWTH
    found = read_patch(outcome.diff, {"train.py": before.encode()})["train.py"].decode()
    if name != "a dictionary in a method":
        assert found == HEAD + body.replace("@@", new)
    else:  # the call is as good a place
        assert found.count(".detach()") == 1
    assert [v.criterion for v in outcome.chosen.verdicts][-1] == "no growth"


def test_without_being_asked_it_is_no_fault(analyse):
    body, old, _ = LEAKING["a list"]
    assert analyse(HEAD + body.replace("@@", old)).status is Status.CLEAN


def test_a_graph_that_does_not_grow_is_no_fault(analyse):
    assert analyse(HEAD + "kept = []\n" + LOOP + TRAIN + "    kept = [loss]\n", leaks=True).status is Status.CLEAN


def test_a_sum_that_is_wanted_is_not_cut(analyse):
    """One update from the losses of sixty batches: it has to grow until then."""
    body = "total = 0\nfor k in range(3):\n    total = 0\n"
    body += "    for i in range(20):\n        total = total + net(torch.randn(4, 3)).pow(2).mean()\n"
    outcome = analyse(HEAD + body + "    opt.zero_grad()\n    total.backward()\n    opt.step()\n", leaks=True)
    assert outcome.status is Status.CLEAN or not any(t.level is Level.SAFE for t in outcome.trials)


def test_the_exit_status_is_that_of_a_failure(command, tmp_path):
    body, old, _ = LEAKING["a list"]
    (tmp_path / "train.py").write_text(HEAD + body.replace("@@", old))
    said = command(tmp_path, "fix", "--leaks", "train.py")
    assert said.status == 0 and "+    seen.append(loss.detach())" in said.stdout and "graph grows" in said.stderr
    assert command(tmp_path, "fix", "--leaks", "--check", "train.py").status == 1
    assert command(tmp_path, "fix", "--check", "train.py").status == 0
    explained = command(tmp_path, "explain", "--leaks", "train.py")
    assert explained.status == 1 and "graph-kept" in explained.stdout and "+++" not in explained.stdout
