"""Derivatives with respect to an input that the graph does not know: it is marked where it has to be."""

from __future__ import annotations

import pytest

from autodetach.model import Cause, Level, Status
from autodetach.source.diff import read_patch

HEAD = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
def slope(u, x):
    return torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]
"""
TRAIN = "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
LOOP = "for _ in range(20):\n"
SAFE = {
    "points made in the loop": (
        LOOP + "@@    loss = (slope(net(x), x) - 1).pow(2).mean()\n" + TRAIN,
        "    x = torch.rand(9, 2)\n",
        "    x = torch.rand(9, 2).requires_grad_()\n",
    ),
    "a mixture of two samples": (
        LOOP
        + "    a, b = torch.rand(9, 2), torch.rand(9, 2)\n@@    loss = (slope(net(x), x).norm() - 1).mean()\n"
        + TRAIN,
        "    x = 0.3 * a + 0.7 * b\n",
        "    x = (0.3 * a + 0.7 * b).requires_grad_()\n",
    ),
    "two inputs, put together in a function": (
        "def field(x, t):\n    return net(torch.cat([x, t], 1))\n@@"
        + LOOP
        + "    u = field(x, t)\n    loss = (slope(slope(u, x), x) - slope(u, t)).pow(2).mean()\n"
        + TRAIN,
        "x = torch.rand(9, 1)\nt = torch.rand(9, 1)\n",
        "x = torch.rand(9, 1).requires_grad_()\nt = torch.rand(9, 1).requires_grad_()\n",
    ),
    "batches from a loader": (
        "for x in DataLoader(torch.rand(80, 2), batch_size=8):\n@@    loss = (slope(u, x) - 1).pow(2).mean()\n" + TRAIN,
        "    u = net(x)\n",
        "    x.requires_grad_()\n    u = net(x)\n",
    ),
    "marked behind the forward pass": (
        LOOP + "    x = torch.rand(9, 2)\n@@    loss = (slope(u, x) - 1).pow(2).mean()\n" + TRAIN,
        "    u = net(x)\n    x.requires_grad_(True)\n",
        "    x.requires_grad_(True)\n    u = net(x)\n",
    ),
    "the attribute, set behind the forward pass": (
        LOOP + "    x = torch.rand(9, 2)\n@@    loss = (slope(u, x) - 1).pow(2).mean()\n" + TRAIN,
        "    u = net(x)\n    x.requires_grad = True\n",
        "    x.requires_grad = True\n    u = net(x)\n",
    ),
    "detached on the way": (
        LOOP + "    x = torch.rand(9, 2, requires_grad=True)\n@@    loss = (slope(u, x) - 1).pow(2).mean()\n" + TRAIN,
        "    u = net(x.detach() * 2)\n",
        "    u = net(x * 2)\n",
    ),
    "a copy is marked, the original is used": (
        LOOP
        + "    x = torch.rand(9, 2)\n    p = x.clone().requires_grad_()\n@@    loss = slope(u, p).pow(2).mean()\n"
        + TRAIN,
        "    u = net(x)\n",
        "    u = net(p)\n",
    ),
    "a reshaped copy, made too late": (
        LOOP + "    x = torch.rand(18)\n    x = x.view(9, 2)\n@@    loss = slope(u, x).pow(2).mean()\n" + TRAIN,
        "    u = net(x)\n    x = x.reshape(9, 2).clone().requires_grad_()\n",
        "    x = x.reshape(9, 2).clone().requires_grad_()\n    u = net(x)\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAFE)
def test_the_input_is_marked_in_time(analyse, name):
    body, old, new = SAFE[name]
    before = HEAD + body.replace("@@", old)
    outcome = analyse(before)
    assert outcome.status is Status.REPAIRED, (outcome.diagnosis, outcome.trials)
    assert outcome.diagnosis.cause in (Cause.INPUT_UNMARKED, Cause.INPUT_UNUSED)
    found = read_patch(outcome.diff, {"train.py": before.encode()})["train.py"].decode()
    assert found == HEAD + body.replace("@@", new)
    assert "allow_unused" not in outcome.diff


UNKNOWN = {
    "a part of what was used": "    p = torch.rand(9, 2, requires_grad=True)\n    u, x = net(p), p[:, :1]\n",
    "something else": "    x = torch.rand(9, 2, requires_grad=True)\n    u = net(torch.rand(9, 2))\n",
    "a multiple of what was used": "    p = torch.rand(9, 2, requires_grad=True)\n    u, x = net(p), 2 * p\n",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_where_no_edit_is_known_to_be_meant_it_is_told_where_they_part(analyse, name):
    outcome = analyse(HEAD + LOOP + UNKNOWN[name] + "    loss = slope(u, x).pow(2).mean()\n" + TRAIN)
    assert outcome.status is Status.UNREPAIRED and outcome.diff == ""
    assert outcome.diagnosis.cause is Cause.INPUT_UNUSED
    assert Level.SAFE not in {t.level for t in outcome.trials}
    assert not any("allow_unused" in t.diff for t in outcome.trials)
    assert {e.span.line for e in outcome.diagnosis.evidence if e.span} > {9}


def test_the_first_wording_is_a_diagnosis_of_its_own(analyse):
    outcome = analyse(HEAD + LOOP + "    x = torch.rand(9, 2)\n    loss = slope(net(x), x).pow(2).mean()\n" + TRAIN)
    assert outcome.diagnosis.cause is Cause.INPUT_UNMARKED


def test_a_function_without_parameters(analyse):
    """The error is the one of a loss without a graph."""
    body = "x = torch.linspace(0, 1, 5)\ny = x.sin()\nprint(torch.autograd.grad(y.sum(), x)[0])\n"
    outcome = analyse(HEAD + body)
    assert outcome.status is Status.REPAIRED, outcome.diagnosis
    assert "+x = torch.linspace(0, 1, 5).requires_grad_()\n" in outcome.diff
