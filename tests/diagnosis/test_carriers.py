"""A stale state in the ways that PyTorch is really used: each is found and cut where it stands."""

from __future__ import annotations

import pytest

from autodetach.model import Cause, Status

HEAD = """\
import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.RNNCell(2, 3), nn.Linear(3, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
h = torch.zeros(1, 3)
"""
LOOP = """\
for _ in range(20):
    h = cell(torch.randn(1, 2), h)
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
CUT = "    h = cell(torch.randn(1, 2), h.detach())"

# name: (program, the lines that the patch adds)
PROGRAMS = {
    "checkpointed": (
        "from torch.utils.checkpoint import checkpoint\n"
        + LOOP.replace("cell(torch.randn(1, 2), h)", "checkpoint(cell, torch.randn(1, 2), h, use_reentrant=False)"),
        ["    h = checkpoint(cell, torch.randn(1, 2), h.detach(), use_reentrant=False)"],
    ),
    "saved tensors are packed": (
        "n = [0]\ndef unpack(x):\n    n[0] += 1\n    return x\n"
        "hooks = torch.autograd.graph.saved_tensors_hooks(lambda x: x, unpack)\nhooks.__enter__()\n" + LOOP,
        [CUT],
    ),
    "autocast": (
        LOOP.replace("    h = cell", "    with torch.autocast('cpu', dtype=torch.bfloat16):\n        h = cell").replace(
            "head(h)", "head(h.float())"
        ),
        [f"    {CUT}"],
    ),
    "a gradient scaler": (
        "scaler = torch.amp.GradScaler('cpu')\n"
        + LOOP.replace("loss.backward()", "scaler.scale(loss).backward()").replace(
            "opt.step()", "scaler.step(opt)\n    scaler.update()"
        ),
        [CUT],
    ),
    "a subclass of tensor": (
        "class Mine(torch.Tensor):\n    pass\nh = h.as_subclass(Mine)\n" + LOOP,
        [CUT],
    ),
    "a function of one's own": (
        "class Square(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n        return x * x\n    @staticmethod\n    def backward(ctx, g):\n"
        "        return 2 * g * ctx.saved_tensors[0]\n"
        + LOOP.replace("cell(torch.randn(1, 2), h)", "Square.apply(cell(torch.randn(1, 2), h))"),
        ["    h = Square.apply(cell(torch.randn(1, 2), h.detach()))"],
    ),
    "several optimizers": (
        "more = torch.optim.Adam(head.parameters())\nopt = torch.optim.SGD(cell.parameters(), 0.1)\n"
        + LOOP.replace("    opt.step()", "    opt.step()\n    more.step()\n    more.zero_grad()"),
        [CUT],
    ),
    "a closure": (
        "opt = torch.optim.LBFGS(cell.parameters(), lr=0.01, max_iter=3)\nfor _ in range(20):\n"
        "    x = torch.randn(1, 2)\n    def closure():\n        global new\n        opt.zero_grad()\n"
        "        new = cell(x, h)\n        loss = head(new).pow(2).mean()\n        loss.backward()\n"
        "        return loss\n"
        "    opt.step(closure)\n    h = new\n",
        ["    h = new.detach()"],
    ),
    "a generator": (
        "def stream(h):\n    while True:\n        h = cell(torch.randn(1, 2), h)\n        yield h\nstates = stream(h)\n"
        + LOOP.replace("cell(torch.randn(1, 2), h)", "next(states)"),
        [f"    {CUT}"],
    ),
    "a coroutine": (
        "import asyncio\nasync def forward(h):\n    await asyncio.sleep(0)\n    return cell(torch.randn(1, 2), h)\n"
        "async def main(h):\n    for _ in range(20):\n        h = await forward(h)\n        opt.zero_grad()\n"
        "        head(h).pow(2).mean().backward()\n        opt.step()\nasyncio.run(main(h))\n",
        ["        h = await forward(h.detach())"],
    ),
    "a patched backward": (
        "plain = torch.Tensor.backward\ntorch.Tensor.backward = lambda self, *a, **k: plain(self, *a, **k)\n" + LOOP,
        [CUT],
    ),
    "a tracer": ("import sys\nsys.settrace(lambda *_: None)\n" + LOOP, [CUT]),
    "an update by hand": (
        LOOP.replace("opt.zero_grad()", "cell.zero_grad()").replace(
            "    opt.step()",
            "    with torch.no_grad():\n        for p in cell.parameters():\n            p -= 0.1 * p.grad",
        ),
        [CUT],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_stale_state_is_cut_where_it_stands(analyse, name, added):
    program, lines = PROGRAMS[name]
    outcome = analyse(HEAD + program)
    assert outcome.status is Status.REPAIRED and outcome.diagnosis.cause is Cause.CARRIED_STATE
    assert added(outcome.diff) == lines
    assert not any("recorder failed" in note for note in outcome.notes)


UNKNOWN = {
    "vmap": LOOP.replace("cell(torch.randn(1, 2), h)", "torch.func.vmap(lambda a: torch.tanh(a * cell.bias_ih))(h)"),
    "reentrant checkpoint": "from torch.utils.checkpoint import checkpoint\nh.requires_grad_()\n"
    + LOOP.replace("cell(torch.randn(1, 2), h)", "checkpoint(cell, torch.randn(1, 2), h, use_reentrant=True)"),
    "a scripted module": "cell = torch.jit.script(cell)\n" + LOOP,
}


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.filterwarnings("ignore")
def test_what_is_not_seen_through_is_never_patched_wrongly(analyse, name, added):
    outcome = analyse(HEAD + UNKNOWN[name])
    assert outcome.diagnosis.evidence
    assert outcome.status is Status.UNREPAIRED or all("detach()" in line for line in added(outcome.diff))


def test_a_gradient_that_happens_to_be_zero_is_no_starvation(analyse):
    """Every second input is zero, and so is the gradient of the input's weights."""
    program = LOOP.replace("for _ in range(20)", "for i in range(20)").replace(
        "torch.randn(1, 2)", "(i % 2) * torch.randn(1, 2)"
    )
    outcome = analyse(HEAD + program)
    assert outcome.diagnosis.cause is Cause.CARRIED_STATE and outcome.status is Status.REPAIRED
