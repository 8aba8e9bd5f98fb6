"""What a program means, told by what it does: two meanings are never decided by us, one is."""

from __future__ import annotations

import pytest

from autodetach.model import Cause, Level, Status

HEAD = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 4)
"""
TRAIN = "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
SGD = "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
BY_HAND = (
    "    net.zero_grad()\n    loss.backward()\n    with torch.no_grad():\n        for p in net.parameters():\n"
    "            p -= 0.1 * p.grad\n"
)
ZERO = HEAD + (
    "table, head = nn.Embedding(3, 4), nn.Linear(4, 1)\nnn.init.zeros_(head.weight)\nx = torch.randn(8, 3)\n"
    "params = [*net.parameters(), *table.parameters(), *head.parameters()]\n"
)

# name: (program, cause, the lines that the patch adds)
ONE = {
    "the target comes from the same flagged tensor: data": (
        HEAD + SGD + "x = torch.randn(32, 3, requires_grad=True)\ny = torch.sin(x.sum(1, keepdim=True))\n"
        "x = (x - x.mean()) / x.std()\nfor _ in range(30):\n    loss = (net(x) - y).pow(2).mean()\n" + TRAIN,
        Cause.SPURIOUS_LEAF,
        ["x = torch.randn(32, 3)"],
    ),
    "the target was computed from the same flagged tensor's values: data": (
        HEAD + SGD + "t = torch.linspace(-1, 1, 32, requires_grad=True)\ny = torch.sin(3 * t.detach()).unsqueeze(1)\n"
        "x = torch.stack([t, t**2, t**3], dim=1)\nfor _ in range(30):\n    loss = (net(x) - y).pow(2).mean()\n" + TRAIN,
        Cause.SPURIOUS_LEAF,
        ["t = torch.linspace(-1, 1, 32)"],
    ),
    "labels that were read off the same flagged batches: data": (
        HEAD + SGD + "batches = []\nfor _ in range(4):\n    x = torch.randn(8, 3).requires_grad_()\n"
        "    label = (x.sum(1) > 0).long()\n    batches.append(((x - x.mean()) / x.std(), label))\nfor _ in range(8):\n"
        "    for x, label in batches:\n        loss = nn.functional.cross_entropy(net(x), label)\n"
        + TRAIN.replace("    ", "        "),
        Cause.SPURIOUS_LEAF,
        ["    x = torch.randn(8, 3)"],
    ),
    "a whole term of the loss would teach nobody": (
        HEAD + "table = nn.Embedding(5, 3)\nopt = torch.optim.SGD(table.parameters(), lr=0.1)\nfor epoch in range(6):\n"
        "    rows = table.weight.tanh()\n    for _ in range(5):\n        i, j = torch.randint(0, 5, (2, 8))\n"
        "        loss = (rows[i] * rows[j]).sum(1).exp().mean() + 0.1 * table(i).pow(2).mean()\n"
        + TRAIN.replace("    ", "        "),
        Cause.BUILT_ONCE,
        ["        rows = table.weight.tanh()"],
    ),
    "built once, updated by hand": (
        HEAD + "net.share = nn.Parameter(torch.zeros(3))\nshare = net.share.softmax(0)\nfor _ in range(30):\n"
        "    x = torch.randn(8, 3)\n    loss = (net(x * share) - x[:, :1]).pow(2).mean()\n" + BY_HAND,
        Cause.BUILT_ONCE,
        ["    share = net.share.softmax(0)"],
    ),
    "built once, updated by hand, where rounding alone teaches a bias": (
        HEAD + "net.key, net.share = nn.Linear(3, 3), nn.Parameter(torch.ones(3))\nshare = net.share.tanh()\n"
        "for _ in range(30):\n    x = torch.randn(8, 5, 3)\n    score = x @ net.key(x).transpose(1, 2)\n"
        "    loss = net(score.softmax(-1) @ x * share).exp().mean()\n" + BY_HAND,
        Cause.BUILT_ONCE,
        ["    share = net.share.tanh()"],
    ),
    "a derivative that is compared with a constant of its input, updated by hand": (
        HEAD + "for x in torch.randn(30, 8, 3):\n    x = x.detach().clone()\n    x.requires_grad_(True)\n"
        "    e = net(x).tanh()\n    (f,) = torch.autograd.grad(e, x, torch.ones_like(e))\n"
        "    loss = (f - torch.sin(x.detach())).abs().mean()\n" + BY_HAND,
        Cause.FIRST_ORDER_GRAD,
        ["    (f,) = torch.autograd.grad(e, x, torch.ones_like(e), create_graph=True)"],
    ),
    "outputs of a whole epoch, used up one a step: the first is meant as the others are": (
        HEAD + "net = nn.Sequential(net, nn.Dropout(0.3), nn.Linear(4, 1))\n" + SGD +
        "data = list(torch.randn(5, 8, 3))\nfor _ in range(6):\n    old = [net(x) for x in data]\n"
        "    for i, x in enumerate(data):\n        out = net(x)\n"
        "        loss = out.exp().mean() + (out - old[i]).pow(2).mean()\n" + TRAIN.replace("    ", "        "),
        Cause.CARRIED_STATE,
        ["    old = [net(x).detach() for x in data]"],
    ),
    "features of an encoder that nobody updates, by hand": (
        HEAD + "encoder = nn.Linear(2, 3)\nfeatures = torch.stack([encoder(x).tanh() for x in torch.randn(5, 8, 2)])\n"
        "for n in range(30):\n    loss = net(features[n % 5]).exp().mean()\n" + BY_HAND,
        Cause.DATA_WITH_GRAPH,
        ["features = torch.stack([encoder(x).tanh() for x in torch.randn(5, 8, 2)]).detach()"],
    ),
    "a table that its first gradient was too small to move, by hand": (
        HEAD + "net = nn.Linear(3, 1)\nx = torch.randn(8, 3)\nshift = nn.Embedding(1, 3)\n"
        "rows = shift(torch.zeros(1, dtype=torch.long)).tanh()\n"
        "for n in range(30):\n    loss = net(x + rows * (1e-9 if n == 0 else 0.5)).exp().mean()\n"
        "    loss.backward()\n    with torch.no_grad():\n        for p in [*net.parameters(), *shift.parameters()]:\n"
        "            if p.grad is not None:\n                p -= 0.01 * p.grad\n                p.grad = None\n",
        Cause.BUILT_ONCE,
        ["    rows = shift(torch.zeros(1, dtype=torch.long)).tanh()"],
    ),
    "a table below a last layer that starts at zero": (
        ZERO + "opt = torch.optim.SGD([*params], lr=0.1)\nrows = table(torch.arange(3)).tanh().mean(0)\n"
        "for _ in range(30):\n    loss = head(net(x).tanh() + rows).exp().mean()\n" + TRAIN,
        Cause.BUILT_ONCE,
        ["    rows = table(torch.arange(3)).tanh().mean(0)"],
    ),
    "a table below a last layer that starts at zero, by hand": (
        ZERO + "rows = table(torch.arange(3)).tanh().mean(0)\nfor _ in range(30):\n"
        "    loss = head(net(x).tanh() + rows).exp().mean()\n    loss.backward()\n    with torch.no_grad():\n"
        "        for p in params:\n            if p.grad is not None:\n                p -= 0.1 * p.grad\n"
        "                p.grad = None\n",
        Cause.BUILT_ONCE,
        ["    rows = table(torch.arange(3)).tanh().mean(0)"],
    ),
    "a learned first state: it is meant to learn where a sequence begins": (
        HEAD + "net, start = nn.GRUCell(3, 4), nn.Parameter(torch.zeros(1, 4))\n"
        "opt = torch.optim.SGD([*net.parameters(), start], lr=0.1)\nfor _ in range(5):\n    h = start.expand(8, -1)\n"
        "    for x in torch.randn(5, 8, 3):\n        h = net(x, h)\n        loss = h.exp().mean()\n"
        + TRAIN.replace("    ", "        "),
        Cause.CARRIED_STATE,
        ["        h = h.detach()"],
    ),
    "a memo that is first used after a warm-up": (
        HEAD + "prompt = nn.Parameter(torch.randn(4))\nopt = torch.optim.SGD([*net.parameters(), prompt], lr=0.1)\n"
        "memo = {}\n\ndef context():\n    if not memo:\n        memo['context'] = torch.tanh(prompt)\n"
        "    return memo['context']\n\nfor n in range(30):\n    out = net(torch.randn(8, 3))\n    if n > 4:\n"
        "        out = out + context()\n    loss = out.exp().mean()\n" + TRAIN,
        Cause.BUILT_ONCE,
        ["    return torch.tanh(prompt)"],
    ),
    "a target and a prediction in one block, updated by hand": (
        HEAD + "old = nn.Linear(3, 4)\nfor _ in range(30):\n    x = torch.randn(8, 3)\n    with torch.no_grad():\n"
        "        goal = old(x).tanh()\n        out = net(x)\n    loss = (goal - out).pow(2).mean()\n" + BY_HAND,
        Cause.GRAD_MODE_OFF,
        ["    out = net(x)"],
    ),
    "the second loss teaches only what is shared": (
        HEAD + "head = nn.Linear(4, 1)\nopt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)\n"
        "for _ in range(30):\n    h = net(torch.randn(8, 3)).tanh()\n"
        "    first, second = head(h).pow(2).mean(), h.pow(2).mean()\n"
        "    opt.zero_grad()\n    first.backward()\n    second.backward()\n    opt.step()\n",
        Cause.SHARED_GRAPH,
        ["    first.backward(retain_graph=True)"],
    ),
    "made once for the parts of a batch": (
        HEAD + SGD + "for _ in range(20):\n    penalty = net.weight.pow(2).sum()\n    opt.zero_grad()\n"
        "    for x in torch.randn(3, 8, 3):\n        loss = net(x).exp().mean() + penalty\n        loss.backward()\n"
        "    opt.step()\n",
        Cause.SHARED_GRAPH,
        ["        penalty = net.weight.pow(2).sum()"],
    ),
    "a gradient that signs make zero is no starvation": (
        HEAD + "opt = torch.optim.SGD(net.parameters(), lr=0.01)\ntotal = {'loss': 0.0}\n"
        "for x in torch.randn(30, 2, 3):\n"
        "    total['loss'] = total['loss'] + (net(x) - 3).abs().mean() + net.bias.sum() - net.bias.sum()\n"
        "    opt.zero_grad()\n    total['loss'].backward()\n    opt.step()\n",
        Cause.ACCUMULATED_LOSS,
        ["    total['loss'] = total['loss'].detach()"],
    ),
}  # fmt: skip

# the same, but what the argument holds at first is no data: a state
ONE["a state in an argument"] = (
    HEAD.replace("nn.Linear(3, 4)", "nn.Linear(3, 3)") + SGD + "class State:\n    h = torch.zeros(8, 3)\n"
    "def forward(state, x):\n    for _ in range(2):\n        state.h = net(state.h + x).tanh()\n    return state.h\n"
    "state, y = State(), torch.randn(8, 3)\nfor _ in range(30):\n    x = torch.randn(8, 3)\n"
    "    loss = (forward(state, x) - y).pow(2).mean()\n" + TRAIN,
    Cause.CARRIED_STATE,
    ["    state.h = state.h.detach()"],
)

# name: (program, cause, words of the ways out)
TWO = {
    "a flagged input that only the model reads": (
        HEAD + SGD + "z = torch.randn(32, 3, requires_grad=True)\ncode = z / z.norm(dim=1, keepdim=True)\n"
        "y = torch.randn(32, 4)\nfor _ in range(30):\n    fit = (net(code) - y).pow(2).mean()\n"
        "    loss = fit + 0.1 * code.pow(2).mean()\n"
        + TRAIN,
        Cause.SPURIOUS_LEAF,
        "meant to be learned",
    ),
    "a flagged input that stays near where it began": (
        HEAD + SGD + "z = torch.randn(32, 3, requires_grad=True)\nstart = z.detach().clone()\ncode = z / z.norm()\n"
        "y = torch.randn(32, 4)\nfor _ in range(30):\n    fit = (net(code) - y).pow(2).mean()\n"
        "    loss = fit + (code - start).pow(2).mean()\n"
        + TRAIN,
        Cause.SPURIOUS_LEAF,
        "meant to be learned",
    ),
    "a flagged input whose gradient is asked for": (
        HEAD + SGD + "x = torch.randn(32, 3, requires_grad=True)\ny = torch.sin(x.detach().sum(1, keepdim=True))\n"
        "code = x / x.norm(dim=1, keepdim=True)\nfor _ in range(30):\n    loss = (net(code) - y).pow(2).mean()\n"
        + TRAIN + "    print(x.grad.norm())\n",
        Cause.SPURIOUS_LEAF,
        "meant to be learned",
    ),
    "a flagged input that weighs the loss, too": (
        HEAD + SGD + "x = torch.randn(32, 3, requires_grad=True)\ncode = x / x.norm(dim=1, keepdim=True)\n"
        "y = torch.randn(32, 4)\nfor _ in range(30):\n    loss = (net(code) - y).pow(2).mean() / x.detach().norm()\n"
        + TRAIN,
        Cause.SPURIOUS_LEAF,
        "meant to be learned",
    ),
    "an argument's input that the model writes its output over": (
        HEAD.replace("nn.Linear(3, 4)", "nn.Linear(3, 3)") + SGD + "class Graph:\n    x = torch.randn(8, 3)\n"
        "def forward(graph):\n    for _ in range(2):\n        graph.x = net(graph.x).tanh()\n    return graph.x\n"
        "graph, y = Graph(), torch.randn(8, 3)\nfor _ in range(30):\n    loss = (forward(graph) - y).pow(2).mean()\n"
        + TRAIN,
        Cause.CARRIED_STATE,
        "if graph.x should stay the input",
    ),
    "a target made once from what is learned": (
        HEAD + SGD + "goal = net(torch.ones(1, 3)).tanh()\nfor _ in range(30):\n"
        "    loss = (net(torch.randn(8, 3)) - goal).pow(2).mean()\n" + TRAIN,
        Cause.DATA_WITH_GRAPH,
        "meant to stay what it was at the start",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_one_meaning(analyse, name, added):
    program, cause, lines = ONE[name]
    outcome = analyse(program)
    assert outcome.status is Status.REPAIRED, (outcome.diagnosis, outcome.trials)
    assert outcome.diagnosis.cause is cause
    assert added(outcome.diff) == lines


@pytest.mark.parametrize("name", TWO)
def test_two_meanings(analyse, name):
    program, cause, words = TWO[name]
    outcome = analyse(program)
    assert outcome.status is Status.UNREPAIRED and outcome.diagnosis.cause is cause
    assert not any(trial.level is Level.SAFE for trial in outcome.trials)
    assert any(words in way for way in outcome.diagnosis.ways_out)
