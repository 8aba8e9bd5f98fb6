"""State that lies in an object between two steps is cut there, by the name that the loop has for it."""

from __future__ import annotations

import pytest

from autodetach.model import Cause, Level, Status

HEAD = """\
import collections, dataclasses, torch
from torch import nn

torch.manual_seed(0)
data = torch.randn(24, 3, 4, 2)
"""
NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.RNNCell(2, 3), nn.Linear(3, 1)
        INIT
    def forward(self, x):
        h = READ
        h = self.cell(x, h)
        WRITE
        return self.head(h).pow(2).mean()
"""
TRAIN = """\
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in data:
    loss = 0.0
    for moment in x:
        loss = loss + net(moment)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def net(init: str, read: str, write: str, more: str = "") -> str:
    code = NET.replace("INIT", init).replace("READ", read).replace("WRITE", write)
    return HEAD + code + more + TRAIN


LAYERS = (
    NET.replace("INIT", "self.h = torch.zeros(4, 3)")
    .replace("READ", "self.h")
    .replace("WRITE", "self.h = h")
    .replace("class Net", "class Layer")
    .replace("return self.head(h).pow(2).mean()", "return h[:, :2]")
)
TENSOR = net("self.h = torch.zeros(4, 3)", "self.h", "self.h = h")
DETACHING = "    def detach_state(self):\n        self.h = self.h.detach()\n"
RESETTING = "    def reset_state(self):\n        self.h = torch.zeros(4, 3)\n"
RESETTABLE = net("self.h = torch.zeros(4, 3)", "self.h", "self.h = h", RESETTING)

# name: (program, the lines that the patch adds)
PROGRAMS = {
    "an attribute": (TENSOR, ["    net.h = net.h.detach()"]),
    "a buffer": (
        net("self.register_buffer('h', torch.zeros(4, 3))", "self.h", "self.h = h"),
        ["    net.h = net.h.detach()"],
    ),
    "a dict": (
        net("self.state = {'h': torch.zeros(4, 3)}", "self.state['h']", "self.state['h'] = h"),
        ["    net.state['h'] = net.state['h'].detach()"],
    ),
    "a tuple": (
        net("self.state = (torch.zeros(4, 3), 0)", "self.state[0]", "self.state = (h, self.state[1] + 1)"),
        ["    net.state = (net.state[0].detach(), net.state[1])"],
    ),
    "a deque": (
        net("self.state = collections.deque([torch.zeros(4, 3)], 1)", "self.state[-1]", "self.state.append(h)"),
        ["    net.state[-1] = net.state[-1].detach()"],
    ),
    "a method of the holder": (
        net("self.h = torch.zeros(4, 3)", "self.h", "self.h = h", DETACHING),
        ["    net.detach_state()"],
    ),
    "layers in a list": (
        HEAD + LAYERS + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layers = nn.ModuleList(Layer() for _ in range(3))\n"
        "    def forward(self, x):\n        for each in self.layers:\n            x = each(x)\n"
        "        return x.pow(2).mean()\n" + TRAIN,
        ["    for layer in net.layers:", "        layer.h = layer.h.detach()"],
    ),
    "a window of outputs": (
        HEAD + "net = nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "class Window:\n    def __init__(self):\n        self.kept = collections.deque(maxlen=3)\n"
        "    def mean(self, x):\n        self.kept.append(x)\n        return torch.stack(list(self.kept)).mean()\n"
        "window = Window()\nfor x in data[:, 0]:\n    loss = (window.mean(net(x)) - 1).pow(2)\n"
        "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n",
        ["    window.kept[-1] = window.kept[-1].detach()"],
    ),
    "a list whose first entries alone are read": (
        HEAD + "net = nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\nkept = []\n"
        "for x in data:\n    for moment in x:\n        kept.append(net(moment).mean())\n"
        "    losses = [-out * w for out, w in zip(kept, (1.0, 2.0, 3.0))]\n"
        "    opt.zero_grad()\n    torch.stack(losses).sum().backward()\n    opt.step()\n",
        ["    kept.clear()"],
    ),
    "a list that is looked at after the step": (
        HEAD + "net = nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\nkept = []\n"
        "for x in data:\n    for moment in x:\n        kept.append(net(moment).pow(2).mean())\n"
        "    opt.zero_grad()\n    sum(kept).backward()\n    opt.step()\n    print(len(kept))\n    x = None\n",
        ["    kept.clear()"],
    ),
    "a list of pairs on the model": (
        HEAD + "net = nn.Linear(2, 2)\nnet.kept = []\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "def finish():\n    first = [a for (a, _), _ in zip(net.kept, range(3))]\n"
        "    second = [(b - 1).pow(2) for (_, b), _ in zip(net.kept, range(3))]\n"
        "    opt.zero_grad()\n    (sum(first) + sum(second)).backward()\n    opt.step()\n"
        "for x in data:\n    for moment in x:\n        out = net(moment).mean(0)\n"
        "        net.kept.append((out[0], out[1]))\n    finish()\n",
        ["    net.kept.clear()"],
    ),
    "an attribute of a function": (
        HEAD + "cell, head = nn.RNNCell(2, 3), nn.Linear(3, 1)\nparameters = [*cell.parameters(), *head.parameters()]\n"
        "opt = torch.optim.SGD(parameters, lr=0.1)\ndef net(x):\n    h = net.h\n    h = cell(x, h)\n    net.h = h\n"
        "    return head(h).pow(2).mean()\nnet.h = torch.zeros(4, 3)\n" + TRAIN.partition("0.1)\n")[2],
        ["    net.h = net.h.detach()"],
    ),
    "a total that starts as a number": (
        HEAD + "net = nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "stats = {'loss': 0.0}\nfor x in data:\n    stats['loss'] = stats['loss'] + net(x).pow(2).mean()\n"
        "    opt.zero_grad()\n    stats['loss'].backward()\n    opt.step()\n",
        ["    stats['loss'] = stats['loss'].detach()"],
    ),
    "a list that is emptied nowhere, of a function that trains every second time": (
        HEAD + "net = nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\nlosses = []\n"
        "def step(i, x):\n    losses.append(net(x).pow(2).mean())\n    if i % 2:\n        opt.zero_grad()\n"
        "        sum(losses).backward()\n        opt.step()\nfor i, x in enumerate(data):\n    step(i, x)\n",
        ["        losses.clear()"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_held_is_cut_between_two_steps(analyse, name, added):
    program, lines = PROGRAMS[name]
    outcome = analyse(program)
    assert outcome.status is Status.REPAIRED, outcome.trials
    assert added(outcome.diff) == lines


def test_a_list_is_emptied_when_nobody_reads_it_any_more(analyse):
    program, _ = PROGRAMS["a list that is looked at after the step"]
    diff = analyse(program).diff
    assert "     print(len(kept))\n+    kept.clear()\n     x = None" in diff


def test_a_global_that_the_function_may_not_bind_is_left_alone(analyse, added):
    program = (
        HEAD + "cell, head = nn.RNNCell(2, 3), nn.Linear(3, 1)\nh = [torch.zeros(4, 3)]\n"
        "opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)\nstate = h[0]\n"
        "def forward(x):\n    global state\n    new = cell(x, state)\n    state = new\n"
        "    return head(new).pow(2).mean()\n"
        "def step(x):\n    loss = 0.0\n    for moment in x:\n        loss = loss + forward(moment)\n"
        "    opt.zero_grad()\n    loss.backward()\n    opt.step()\nfor x in data:\n    step(x)\n"
    )
    outcome = analyse(program)
    assert outcome.status is Status.REPAIRED
    assert added(outcome.diff) == ["    state = state.detach()"]  # in the module's own loop, not in ``step``


def test_state_that_a_method_would_start_afresh_has_two_meanings(analyse):
    outcome = analyse(RESETTABLE)
    assert outcome.status is Status.UNREPAIRED and outcome.diagnosis.cause is Cause.CARRIED_STATE
    assert {t.level for t in outcome.trials if t.level} == {Level.UNSAFE}
    assert "call reset_state() before its forward pass" in outcome.diagnosis.ways_out[0]
    evaluation = "def test():\n    for x in data:\n        net.reset_state()\n        net(x[0])\n"
    assert analyse(RESETTABLE.replace("net = Net()\n", evaluation + "net = Net()\n")).status is Status.UNREPAIRED


def test_state_that_the_program_starts_afresh_where_it_trains_is_meant_to_be_carried(analyse, added):
    outcome = analyse(RESETTABLE.replace("net = Net()\n", "net = Net()\nnet.reset_state()\n"))
    assert outcome.status is Status.REPAIRED
    assert added(outcome.diff) == ["    net.h = net.h.detach()"]
