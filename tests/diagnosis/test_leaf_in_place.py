"""Leaves that are written in place: updates and initialisations are done with grad mode off, a flag too many goes."""

from __future__ import annotations

import pytest

from autodetach.model import Cause, Level, Status
from autodetach.source.diff import read_patch

HAND = """\
import torch

torch.manual_seed(0)
x = torch.randn(32, 3)
y = x @ torch.tensor([[1.0], [2.0], [-1.0]])
w = torch.zeros(3, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
"""
NET = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
"""
LOOP = "for _ in range(20):\n"
TRAIN = """\
    loss = net(torch.randn(4, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SAFE = {
    "two updates by hand share a block": (
        HAND + LOOP + "    ((x @ w + b - y) ** 2).mean().backward()\n@@    w.grad, b.grad = None, None\n",
        "    w -= 0.1 * w.grad\n    b -= 0.1 * b.grad\n",
        "    with torch.no_grad():\n        w -= 0.1 * w.grad\n        b -= 0.1 * b.grad\n",
    ),
    "an update with momentum in a loop over parameters": (
        NET + "speed = [torch.zeros_like(p) for p in net.parameters()]\n" + LOOP + "    net.zero_grad()\n"
        "    net(torch.randn(4, 3)).pow(2).mean().backward()\n"
        "    for p, v in zip(net.parameters(), speed):\n        v.mul_(0.9).add_(p.grad)\n@@",
        "        p.sub_(0.1 * v)\n",
        "        with torch.no_grad():\n            p.sub_(0.1 * v)\n",
    ),
    "an initialisation of a part": (
        NET + "@@" + LOOP + TRAIN,
        "net.weight[0] = 1.0\n",
        "with torch.no_grad():\n    net.weight[0] = 1.0\n",
    ),
    "a limit, kept on one line with its loop": (
        NET + LOOP + TRAIN + "@@",
        "    for p in net.parameters(): p.clamp_(-0.1, 0.1)\n",
        "    with torch.no_grad():\n        for p in net.parameters(): p.clamp_(-0.1, 0.1)\n",
    ),
    "an optimizer that the program defines": (
        "import torch\nclass Plain(torch.optim.Optimizer):\n    def __init__(self, params):\n"
        "        super().__init__(params, {'lr': 0.1})\n    def step(self):\n        for group in self.param_groups:\n"
        "            for p in group['params']:\n@@"
        "torch.manual_seed(0)\nnet = torch.nn.Linear(3, 1)\nopt = Plain(net.parameters())\n" + LOOP + TRAIN,
        "                p.add_(p.grad, alpha=-group['lr'])\n",
        "                with torch.no_grad():\n                    p.add_(p.grad, alpha=-group['lr'])\n",
    ),
    "under the name that the file has for it": (
        HAND.replace("import torch", "import torch as th").replace("torch.", "th.")
        + LOOP
        + "    ((x @ w + b - y) ** 2).mean().backward()\n    b.grad = None\n@@    w.grad = None\n",
        "    w -= 0.1 * w.grad\n",
        "    with th.no_grad():\n        w -= 0.1 * w.grad\n",
    ),
    "an adversary that reads the gradient of its input": (
        NET + "@@" + LOOP.replace("20", "9") + "    (-net(image).pow(2).mean()).backward()\n"
        "    with torch.no_grad():\n        image += 0.1 * image.grad.sign()\n    image.grad = None\n",
        "image = torch.zeros(4, 3, requires_grad=True)\nimage[0] = 1.0\n",
        "image = torch.zeros(4, 3, requires_grad=True)\nwith torch.no_grad():\n    image[0] = 1.0\n",
    ),
    "predictions written into a buffer that requires gradients": (
        NET + LOOP + "@@    for i in range(4):\n        out[i] = net(torch.randn(3))\n    loss = out.pow(2).mean()\n"
        "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n",
        "    out = torch.zeros(4, 2, requires_grad=True)\n",
        "    out = torch.zeros(4, 2)\n",
    ),
}


@pytest.mark.parametrize("name", SAFE)
def test_the_smallest_patch_that_trains_the_same(analyse, name):
    program, old, new = SAFE[name]
    before, after = program.replace("@@", old), program.replace("@@", new)
    outcome = analyse(before)
    assert outcome.status is Status.REPAIRED, (outcome.diagnosis, outcome.trials)
    assert read_patch(outcome.diff, {"train.py": before.encode()})["train.py"].decode() == after
    assert outcome.diagnosis.cause in (Cause.LEAF_WRITTEN, Cause.SPURIOUS_LEAF)


UNDECIDED = {
    "a mask on a weight in every forward pass": (
        "class Masked(nn.Linear):\n    def forward(self, x):\n        self.weight *= (torch.arange(3) > 0)\n"
        "        return super().forward(x)\nnet = Masked(3, 2)\nopt = torch.optim.Adam(net.parameters())\n"
        + LOOP
        + TRAIN
    ),
    "a tensor with a graph added to a weight": LOOP + "    net.bias += net(torch.randn(3)).tanh()\n" + TRAIN,
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_has_two_meanings_is_not_called_safe(analyse, name):
    outcome = analyse(NET + UNDECIDED[name])
    assert outcome.status is Status.UNREPAIRED and outcome.diff == ""
    assert {t.level for t in outcome.trials} <= {None, Level.UNSAFE}
    assert any("no_grad()" in way for way in outcome.diagnosis.ways_out)
    assert any("new name" in way for way in outcome.diagnosis.ways_out)


def test_a_file_that_cannot_say_no_grad_gets_no_patch(analyse):
    """It knows torch by the names it imported from it."""
    program = HAND.replace("import torch\n", "from torch import manual_seed, randn, tensor, zeros\n").replace(
        "torch.", ""
    )
    outcome = analyse(
        program
        + LOOP
        + "    ((x @ w + b - y) ** 2).mean().backward()\n    b.grad = None\n    w -= w.grad\n    w.grad = None\n"
    )
    assert outcome.status is Status.UNREPAIRED and outcome.diff == ""
