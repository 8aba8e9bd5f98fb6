"""Deep copies of what holds a computed tensor: it is held, or copied, without its graph."""

from __future__ import annotations

import pytest

from autodetach.model import Cause, Level, Status
from autodetach.source.diff import read_patch

HEAD = """\
import copy
import torch
from torch import nn

torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(3, 4), nn.Linear(4, 1)
        self.state = None
    def forward(self, x):
        h = self.cell(x, None if self.state is None else self.state.detach())
@@
        return self.out(h)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
kept = []
for i in range(20):
    out = net(torch.randn(4, 3))
    loss = out.pow(2).mean()
"""
TRAIN = "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
STORE = "        self.state = h"
SAFE = {
    "a module with a state": (HEAD + TRAIN + "    kept.append(copy.deepcopy(net))\n", STORE, f"{STORE}.detach()"),
    "a penalty on what is stored": (
        HEAD + "    loss = loss + net.state.abs().mean()\n" + TRAIN + "    best = copy.deepcopy(net)\n",
        "    best = ",
        "    net.state = net.state.detach()\n    best = ",
    ),
    "a tensor": (HEAD + TRAIN + "    kept.append(copy.deepcopy(out))\n", "deepcopy(out)", "deepcopy(out.detach())"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAFE)
def test_it_is_held_or_copied_without_its_graph(analyse, name):
    program, old, new = SAFE[name]
    before = program.replace("@@", STORE)
    outcome = analyse(before)
    assert outcome.status is Status.REPAIRED, (outcome.diagnosis, outcome.trials)
    assert outcome.diagnosis.cause is Cause.GRAPH_COPIED
    found = read_patch(outcome.diff, {"train.py": before.encode()})["train.py"].decode()
    assert found == before.replace(old, new)


def test_a_copy_that_enters_the_loss_may_have_been_meant_with_its_graph(analyse):
    outcome = analyse(HEAD.replace("@@", STORE) + "    loss = loss + (out - copy.deepcopy(out)).abs().mean()\n" + TRAIN)
    assert outcome.status is Status.UNREPAIRED and outcome.diff == ""
    assert Level.SAFE not in {t.level for t in outcome.trials}
    assert any("feed the training" in e.text for e in outcome.diagnosis.evidence) and outcome.diagnosis.ways_out
