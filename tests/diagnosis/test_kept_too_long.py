"""``retain_graph=True`` that only silenced the error: told, repaired when asked for, and left where it is right."""

from __future__ import annotations

import pytest

from autodetach.model import Cause, Status

HEAD = """\
import torch
from torch import nn

torch.manual_seed(0)
net, logits = nn.Linear(4, 1), nn.Parameter(torch.zeros(4))
opt = torch.optim.SGD([*net.parameters(), logits], lr=0.1)
"""
HIDING = {
    "built once": (
        HEAD + "weights = torch.softmax(logits, dim=0)\nfor step in range(30):\n    x = torch.randn(16, 4)\n"
        "    loss = (net(x * weights) - x[:, :1]).pow(2).mean()\n    opt.zero_grad()\n"
        "    loss.backward(retain_graph=True)\n    opt.step()\n",
        Cause.BUILT_ONCE,
        ["    weights = torch.softmax(logits, dim=0)", "    loss.backward()"],
        ("train.py:12", "train.py:7"),
    ),
    "carried, by updates that autograd does not see": (
        HEAD.replace("opt = torch.optim.SGD([*net.parameters(), logits], lr=0.1)\n", "state = torch.zeros(16, 1)\n")
        + "for step in range(30):\n    x = torch.randn(16, 4)\n    state = torch.tanh(net(x) + 0.5 * state)\n"
        "    loss = (state - x[:, :1]).pow(2).mean()\n    net.zero_grad()\n    loss.backward(retain_graph=True)\n"
        "    for p in net.parameters():\n        p.data -= 0.1 * p.grad\n",
        Cause.CARRIED_STATE,
        ["    state = torch.tanh(net(x) + 0.5 * state.detach())", "    loss.backward()"],
        ("train.py:12", "train.py:9"),
    ),
}


@pytest.mark.parametrize("name", HIDING)
def test_what_a_kept_graph_hides_is_told_with_both_places(analyse, name):
    program, _, _, (back, made) = HIDING[name]
    outcome = analyse(program)
    assert outcome.status is Status.CLEAN and outcome.diff == ""
    [note] = [n for n in outcome.notes if "retain_graph" in n]
    assert f"the backward in {back} goes through what was computed in {made}" in note and "--leaks" in note


@pytest.mark.parametrize("name", HIDING)
def test_it_is_repaired_when_asked_for_and_the_kept_graph_goes(analyse, name, added):
    program, cause, lines, _ = HIDING[name]
    outcome = analyse(program, leaks=True)
    assert outcome.status is Status.REPAIRED and outcome.diagnosis.cause is cause
    assert added(outcome.diff) == lines
    assert any("hides a fault" in n for n in outcome.notes)


def test_a_graph_that_two_losses_of_a_step_share_hides_nothing(analyse):
    program = HEAD + (
        "for step in range(30):\n    x = torch.randn(16, 4)\n    out = torch.tanh(net(x))\n    opt.zero_grad()\n"
        "    out.mean().backward(retain_graph=True)\n    out.pow(2).mean().backward()\n    opt.step()\n"
    )
    outcome = analyse(program, leaks=True)
    assert outcome.status is Status.CLEAN and not any("retain_graph" in n for n in outcome.notes)


def test_what_a_gradient_with_a_graph_keeps_is_no_leftover(analyse, added):
    program = HEAD + (
        "h = torch.zeros(8, 1)\nfor step in range(30):\n    x = torch.randn(8, 4, requires_grad=True)\n"
        "    h = torch.tanh(net(x) + h)\n"
        "    (g,) = torch.autograd.grad(h.sum(), x, create_graph=True, retain_graph=True)\n"
        "    loss = h.pow(2).mean() + g.pow(2).mean()\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
    )
    outcome = analyse(program)
    assert outcome.status is Status.REPAIRED
    assert added(outcome.diff) == ["    h = torch.tanh(net(x) + h.detach())"]
