"""Losses that the program itself cuts off: detached, rebuilt from values, computed from numbers, or all frozen."""

from __future__ import annotations

import pytest

from autodetach.model import Cause, Level, Status
from autodetach.source.diff import read_patch

HEAD = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
f = nn.MSELoss()
"""
LOOP = "for _ in range(20):\n    x, y = torch.randn(4, 3), torch.randn(4, 2)\n"
TRAIN = "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
SAFE = {
    "a detach in a helper": (
        "def predict(x):\n@@" + LOOP + "    loss = f(predict(x), y)\n" + TRAIN,
        "    return net(x).detach()\n",
        "    return net(x)\n",
    ),
    "the values alone": (LOOP + "@@    loss = f(out, y)\n" + TRAIN, "    out = net(x).data\n", "    out = net(x)\n"),
    "two detaches in a row": (
        LOOP + "@@    loss = f(out, y)\n" + TRAIN,
        "    h = net[0](x).detach()\n    out = net[1:](h).detach()\n",
        None,
    ),
    "a list of losses in a new tensor": (
        LOOP + "    losses = [f(net(x + i), y) for i in range(3)]\n@@" + TRAIN,
        "    loss = torch.tensor(losses).mean()\n",
        "    loss = torch.stack(losses).mean()\n",
    ),
    "a loss in a new tensor": (
        LOOP + "@@" + TRAIN,
        "    loss = torch.tensor(f(net(x), y), dtype=torch.float32)\n",
        "    loss = f(net(x), y)\n",
    ),
    "the old constructor": (
        LOOP + "    losses = [f(net(x + i), y) for i in range(3)]\n@@" + TRAIN,
        "    loss = torch.Tensor(losses).sum()\n",
        "    loss = torch.stack(losses).sum()\n",
    ),
    "a sum of numbers": (
        LOOP + "    total = 0.0\n    for i in range(3):\n        print(f(net(x), y).item())\n@@" + TRAIN,
        "        total += f(net(x + i), y).item()\n    loss = torch.tensor(total)\n",
        "        total += f(net(x + i), y)\n    loss = total\n",
    ),
    "numbers added to a tensor": (
        LOOP + "    loss = torch.tensor(0.0)\n    for i in range(3):\n@@" + TRAIN,
        "        loss += float(f(net(x + i), y))\n",
        "        loss += f(net(x + i), y)\n",
    ),
}


@pytest.mark.parametrize("name", [n for n, (_, _, new) in SAFE.items() if new is not None])
def test_the_way_is_opened_again(analyse, name):
    body, old, new = SAFE[name]
    before = HEAD + body.replace("@@", old)
    outcome = analyse(before)
    assert outcome.status is Status.REPAIRED, (outcome.diagnosis, outcome.trials)
    assert outcome.diagnosis.cause is Cause.CUT_OFF
    assert read_patch(outcome.diff, {"train.py": before.encode()})["train.py"].decode() == HEAD + body.replace(
        "@@", new
    )


def test_whether_the_first_of_two_detaches_is_meant_is_not_known(analyse):
    """The last one has to go; the first leaves a net of whose layers one does not learn."""
    body, old, _ = SAFE["two detaches in a row"]
    outcome = analyse(HEAD + body.replace("@@", old))
    assert outcome.status is Status.UNREPAIRED and outcome.diff == ""
    assert {t.level for t in outcome.trials} == {Level.UNSAFE}
    assert any("another detach()" in way for way in outcome.diagnosis.ways_out)


UNDECIDED = {
    "two detached predictions": LOOP + "    loss = f(net(x).detach(), net(x + 1).detach())\n" + TRAIN,
    "one detached, one without gradients": (
        LOOP + "    with torch.no_grad():\n        out = net(x)\n    loss = f(out, net(x + 1).detach())\n" + TRAIN
    ),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_where_either_of_two_may_learn_nothing_is_safe(analyse, name):
    outcome = analyse(HEAD + UNDECIDED[name])
    assert outcome.status is Status.UNREPAIRED and outcome.diff == ""
    assert Level.UNSAFE in {t.level for t in outcome.trials} and Level.SAFE not in {t.level for t in outcome.trials}
    assert any("constant" in way for way in outcome.diagnosis.ways_out)


LOSSES_WITHOUT_DERIVATIVE = {
    "argmax": "    loss = (net(x).argmax(1).float() - 1).pow(2).mean()\n",
    "round": "    loss = f(net(x).gt(0).float(), y)\n",
    "numpy": "    loss = torch.from_numpy(net(x).detach().numpy()).pow(2).mean()\n",
}


@pytest.mark.parametrize("name", LOSSES_WITHOUT_DERIVATIVE)
def test_what_has_no_derivative_is_explained_and_where(analyse, name):
    outcome = analyse(HEAD + LOOP + LOSSES_WITHOUT_DERIVATIVE[name] + TRAIN)
    assert outcome.status is Status.UNREPAIRED and outcome.diff == ""
    assert not any(t.level for t in outcome.trials)
    assert outcome.diagnosis.cause is Cause.NOT_DIFFERENTIABLE
    assert any(e.span is not None and e.span.line == 10 for e in outcome.diagnosis.evidence)


BODY = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 6), nn.Linear(6, 5)
    def forward(self, x):
        return self.head(self.body(x).relu())

net = Net()
"""
FROZEN = {
    "a loop over all parameters": (
        "net.head = nn.Linear(6, 2)\nfor p in net.parameters():\n    p.requires_grad = False\n",
        "for p in net.parameters():\n    p.requires_grad = False\nnet.head = nn.Linear(6, 2)\n",
    ),
    "the method of modules": (
        "net.head = nn.Linear(6, 2)\nnet.requires_grad_(False)\n",
        "net.requires_grad_(False)\nnet.head = nn.Linear(6, 2)\n",
    ),
    "the head was there before": (
        "net.head.out_features\nfor p in net.parameters():\n    p.requires_grad_(False)\n",
        "net.head.out_features\nfor p in net.parameters():\n    p.requires_grad_(False)\n"
        "net.head.requires_grad_(True)\n",
    ),
}
REST = "opt = torch.optim.SGD(net.head.parameters(), lr=0.1)\n" + LOOP + "    loss = net(x).pow(2).mean()\n" + TRAIN


@pytest.mark.parametrize("name", FROZEN)
def test_what_the_optimizer_holds_is_thawed(analyse, name):
    old, new = FROZEN[name]
    before = HEAD + BODY + old + REST
    outcome = analyse(before)
    assert outcome.status is Status.REPAIRED, (outcome.diagnosis, outcome.trials)
    assert outcome.diagnosis.cause is Cause.FROZEN_PARAMETERS
    assert read_patch(outcome.diff, {"train.py": before.encode()})["train.py"].decode() == HEAD + BODY + new + REST


def test_if_the_optimizer_holds_all_that_is_frozen_it_is_not_known_what_is_to_learn(analyse):
    outcome = analyse(
        HEAD + BODY + "net.requires_grad_(False)\n" + REST.replace("net.head.parameters", "net.parameters")
    )
    assert outcome.status is Status.UNREPAIRED and outcome.diff == ""
    assert Level.SAFE not in {t.level for t in outcome.trials}
    assert outcome.diagnosis.cause is Cause.FROZEN_PARAMETERS and outcome.diagnosis.ways_out
