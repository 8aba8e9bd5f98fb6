"""The story of a failure: its cause, and the file and line where a graph was made, kept and read."""

from __future__ import annotations

import pytest

from autodetach.model import Cause, FailureKind

FILES = {
    "train.py": """\
from lib.memory import Memory
from lib.net import Net
import torch

torch.manual_seed(0)
net, memory = Net(), Memory()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(30):
    out = net(torch.randn(4, 2), memory.get())
    memory.put(out)
    opt.zero_grad()
    out.pow(2).mean().backward()
    opt.step()
""",
    "lib/memory.py": """\
import torch


class Memory:
    def __init__(self):
        self.kept = torch.zeros(4, 3)

    def put(self, value):
        self.kept = value

    def get(self):
        return self.kept
""",
    "lib/net.py": """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.x, self.h = torch.nn.Linear(2, 3), torch.nn.Linear(3, 3)

    def forward(self, x, state):
        return torch.tanh(self.x(x) + self.h(state))
""",
}


def test_made_kept_and_read(analyse):
    diagnosis = analyse(FILES, command="explain").diagnosis
    assert diagnosis.cause is Cause.CARRIED_STATE
    assert diagnosis.failure.kind is FailureKind.SECOND_BACKWARD
    told = [(e.span.place, e.text) for e in diagnosis.evidence]
    assert told[0] == ("train.py:12", "step 2: this backward fails")
    made = next(place for place, text in told if "was made here in step 1" in text)
    read = next(place for place, text in told if "is read here in step 2" in text)
    assert (made, read) == ("lib/net.py:10", "lib/net.py:10")
    assert any("kept here" in text for _, text in told)
    assert "freed by an earlier backward" in next(text for _, text in told if "is read here" in text)
    assert "`state`" in next(text for _, text in told if "is read here" in text)


def test_the_store_that_outlives_the_step_is_named(analyse):
    diagnosis = analyse(FILES, command="explain").diagnosis
    assert next(e.span.place for e in diagnosis.evidence if "kept here" in e.text) == "lib/memory.py:9"
    held = next(e for e in diagnosis.evidence if "a step ends" in e.text)
    assert held.text == "when a step ends it lies in `memory.kept`" and held.span.place == "train.py:12"
    assert next(e.span.place for e in diagnosis.evidence if "kept here" in e.text) == "lib/memory.py:9"


HEAD = """\
import torch
from torch import nn
torch.manual_seed(0)
net, other = nn.Linear(2, 1), nn.Linear(1, 1)
opt = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.1)
def step(loss):
    opt.zero_grad(); loss.backward(); opt.step()
"""
CAUSES = {
    Cause.ACCUMULATED_LOSS: "total = 0\nfor _ in range(20):\n    total = total + net(torch.randn(4, 2)).pow(2).mean()\n"
    "    step(total)\n",
    Cause.BUILT_ONCE: "w = nn.Parameter(torch.ones(2)); opt.add_param_group({'params': [w]})\nscale = w.exp()\n"
    "for _ in range(20):\n    step(net(torch.randn(4, 2) * scale).pow(2).mean())\n",
    Cause.DATA_WITH_GRAPH: "frozen = nn.Linear(2, 1)\ntarget = torch.tanh(frozen(torch.randn(4, 2)))\n"
    "for _ in range(20):\n    step((net(torch.randn(4, 2)) - target).pow(2).mean())\n",
    Cause.SPURIOUS_LEAF: "y = torch.randn(4, 1, requires_grad=True).exp()\n"
    "for _ in range(20):\n    step((net(torch.randn(4, 2)) - y).pow(2).mean())\n",
    Cause.GRAD_MODE_OFF: "with torch.no_grad():\n    out = net(torch.randn(4, 2))\nstep(out.pow(2).mean())\n",
    Cause.SHARED_GRAPH: "for _ in range(20):\n    h = torch.tanh(net(torch.randn(4, 2)))\n    opt.zero_grad()\n"
    "    h.mean().backward()\n    other(h).pow(2).mean().backward()\n    opt.step()\n",
    Cause.FIRST_ORDER_GRAD: "x = torch.randn(4, 2, requires_grad=True)\nfor _ in range(20):\n"
    "    (g,) = torch.autograd.grad(net(x).exp().sum(), x)\n    step(g.pow(2).mean())\n",
    Cause.IN_PLACE_CHANGE: "for _ in range(20):\n    h = net(torch.randn(4, 2)).exp()\n    y = h.pow(2)\n    h += 1\n"
    "    step(y.mean())\n",
    Cause.STALE_ROOT: "loss = net(torch.randn(4, 2)).pow(2).mean()\nfor _ in range(20):\n    step(loss)\n",
    Cause.NOT_DIFFERENTIABLE: "for _ in range(20):\n    step(net(torch.randn(4, 2)).argmax(0).float().mean())\n",
    Cause.CHECKPOINT: "from torch.utils.checkpoint import checkpoint\nfor _ in range(20):\n"
    "    step(checkpoint(net, torch.randn(4, 2), use_reentrant=True).pow(2).mean())\n",
}


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_is_told_by_its_name(analyse, cause):
    diagnosis = analyse(HEAD + CAUSES[cause], command="explain").diagnosis
    assert diagnosis.cause is cause
    failing = "train.py:12" if cause is Cause.SHARED_GRAPH else "train.py:7"
    assert diagnosis.evidence[0].span.place == failing


def test_explaining_proposes_nothing(analyse):
    outcome = analyse(HEAD + CAUSES[Cause.ACCUMULATED_LOSS], command="explain")
    assert (outcome.diff, outcome.trials, outcome.chosen, dict(outcome.patched)) == ("", (), None, {})


def test_where_no_patch_keeps_the_meaning_the_ways_out_are_told(analyse):
    outcome = analyse(HEAD + CAUSES[Cause.NOT_DIFFERENTIABLE])
    assert outcome.chosen is None and outcome.diff == ""
    assert any("softmax" in way for way in outcome.diagnosis.ways_out)
    assert any("argmax" in e.text for e in outcome.diagnosis.evidence)


MEMO = """\
import torch

class Cell:
    def __init__(self, net):
        self.net, self.h = net, 0

    def __call__(self, x):
        self.h = torch.tanh(self.net(x) + self.h)
        return self.h
"""


def test_a_value_of_a_library_is_told_by_its_reading_in_the_users_file(analyse, tmp_path):
    """The state lives in installed code: the story still names a line of the user's; no patch touches the library."""
    library = tmp_path / "env" / "site-packages"
    library.mkdir(parents=True)
    (library / "memo.py").write_text(MEMO)
    program = f"import sys\nsys.path.append({str(library)!r})\nfrom memo import Cell\n" + HEAD
    program += "cell = Cell(net)\nfor _ in range(20):\n    step(cell(torch.randn(4, 2)).pow(2).mean())\n"
    outcome = analyse(program)
    read = next(e for e in outcome.diagnosis.evidence if "is read here" in e.text)
    assert read.span.place == "train.py:13"
    assert set(outcome.patched) <= {"train.py"}
    assert (library / "memo.py").read_text() == MEMO
