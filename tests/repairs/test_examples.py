"""What each repair shows as its example is what it does: the example's code, in a real program, becomes its ``after``.

A repair without a program here fails the tests, and so does an example.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap

import pytest

import autodetach.repairs
from autodetach.model import Level, Status
from autodetach.repairs.interface import Example
from autodetach.source.diff import read_patch


def all_repairs():
    for module in pkgutil.iter_modules(autodetach.repairs.__path__):
        room = importlib.import_module(f"autodetach.repairs.{module.name}")
        for kind in vars(room).values():
            if inspect.isclass(kind) and kind.__module__ == room.__name__ and hasattr(kind, "examples"):
                yield kind


REPAIRS = list(all_repairs())
EXAMPLES = {(kind.name, example.title): example for kind in REPAIRS for example in kind.examples}

HEAD = """
import torch
from torch import nn

torch.manual_seed(0)
net, cell = nn.Linear(2, 1), nn.RNNCell(2, 2)
opt = torch.optim.SGD([*net.parameters(), *cell.parameters()], lr=0.1)
"""

PROGRAMS = {
    ("backward-on-fresh-loss", "an index into a list that is never emptied"): HEAD + """
losses, k = [], 0
for _ in range(30):
    loss = net(torch.randn(4, 2)).pow(2).mean()
    opt.zero_grad()
    @@
    opt.step()
""",
    ("checkpoint-without-reentry", "frozen embedding, trainable block"): HEAD + """
from torch.utils.checkpoint import checkpoint
block = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
opt = torch.optim.SGD(block.parameters(), lr=0.1)
for _ in range(30):
    h = torch.randn(4, 2)
    @@
    loss = h.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ("clone-operand", "rows of a tensor are computed from earlier rows"): HEAD + """
m = nn.Parameter(torch.eye(2) + 0.1)
opt = torch.optim.SGD([m], lr=0.1)
for _ in range(30):
    p = torch.zeros(2, 2)
    p[0] = torch.randn(2) @ m
    @@
    opt.zero_grad()
    p.pow(2).sum().backward()
    opt.step()
""",
    ("create-graph", "a gradient penalty"): HEAD + """
net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(30):
    x = torch.randn(4, 2, requires_grad=True)
    out = net(x)
    @@
    loss = (g.norm(dim=1) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ("detach-accumulator", "a total of losses"): HEAD + """
total = torch.zeros(())
for _ in range(30):
    loss = net(torch.randn(4, 2)).pow(2).mean()
    opt.zero_grad()
    @@
    opt.step()
""",
    ("detach-after-unpacking", "one of two results is carried"): HEAD + """
net, head, h = nn.GRU(2, 3), nn.Linear(3, 1), None
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for _ in range(30):
    x = torch.randn(5, 4, 2)
    @@
    loss = head(out).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ("detach", "at the store"): HEAD + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.RNNCell(2, 2), nn.Linear(2, 1)
    def forward(self, x, h):
        h = self.cell(x, h)
        return self.head(h), h

net, h0 = Net(), torch.zeros(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = [(torch.randn(4, 2), torch.randn(4, 1)) for _ in range(30)]
@@
    loss = (out - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ("drop-cache", "a decorator"): HEAD + """
from functools import lru_cache
scale = nn.Parameter(torch.ones(3))
opt = torch.optim.SGD([scale], lr=0.1)
@@
for _ in range(30):
    loss = (table(3) * torch.randn(3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ("drop-cache", "a dictionary"): HEAD + """
scale, memo = nn.Parameter(torch.ones(3)), {}
opt = torch.optim.SGD([scale], lr=0.1)
@@
for _ in range(30):
    loss = (table(3) * torch.randn(3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ("drop-requires-grad", "a factory"): HEAD + """
@@
target = w.exp().sum()
for _ in range(30):
    loss = (net(torch.randn(4, 2)) - target).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ("drop-requires-grad", "a method"): HEAD + """
def load():
    return torch.randn(4, 1)

@@
target = y.exp()
for _ in range(30):
    loss = (net(torch.randn(4, 2)) - target).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ("empty-container", "a list on the agent"): HEAD + """
class Agent:
    def __init__(self):
        self.losses = []
    def act(self):
        self.losses.append(net(torch.randn(4, 2)).pow(2).mean())
    def train(self):
        for _ in range(30):
            self.act()
            self.act()
            opt.zero_grad()
            @@
            opt.step()

Agent().train()
""",
    ("move-below-step", "actor and critic"): HEAD + """
actor, critic = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
opt_a = torch.optim.SGD(critic.parameters(), lr=0.1)
opt_b = torch.optim.SGD(actor.parameters(), lr=0.1)
def actor_loss():
    return -critic(actor(x)).mean()

for _ in range(30):
    x = torch.randn(4, 2)
    a = critic(x).pow(2).mean()
    opt_a.zero_grad()
    opt_b.zero_grad()
    @@
    opt_b.step()
""",
    ("move-into-loop", "weights normalised once"): HEAD + """
logits = nn.Parameter(torch.zeros(2))
opt = torch.optim.SGD([logits], lr=0.1)
softmax = torch.nn.Softmax(dim=0)
data = [(torch.randn(4, 2), torch.randn(4)) for _ in range(30)]
def f(w, x, y):
    opt.zero_grad()
    return (x @ w - y).pow(2).mean()

@@
    opt.step()
""",
    ("move-out-of-no-grad", "the forward pass stands in the block"): HEAD + """
net = nn.Linear(2, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
f = nn.CrossEntropyLoss()
for _ in range(30):
    x = torch.randn(4, 2)
    opt.zero_grad()
    @@
    loss.backward()
    opt.step()
""",
    ("one-backward", "two losses of one network"): HEAD + """
trunk, one, two = nn.Linear(2, 4), nn.Linear(4, 1), nn.Linear(4, 1)
opt = torch.optim.SGD([*trunk.parameters(), *one.parameters(), *two.parameters()], lr=0.1)
for _ in range(30):
    h = torch.tanh(trunk(torch.randn(4, 2)))
    a, b = one(h).mean(), two(h).pow(2).mean()
    opt.zero_grad()
    @@
    opt.step()
""",
    ("detach-between-steps", "a loop over time inside the loop over batches"): HEAD + """
data = torch.randn(30, 3, 4, 2)
h = torch.zeros(4, 2)
def loss(h):
    opt.zero_grad()
    return net(h).pow(2).mean()

@@
    opt.step()
""",
    ("detach-for-numpy", "predictions for a metric"): HEAD + """
x = torch.randn(8, 2)
for _ in range(9):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
@@
print(predicted.mean())
""",
    ("detach-for-numpy", "losses kept for a plot"): HEAD + """
import numpy as np
losses = []
for _ in range(9):
    loss = net(torch.randn(8, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    @@
""",
    ("discarded-detach", "the result is thrown away"): HEAD + """
h = torch.zeros(4, 2)
for _ in range(30):
    h = cell(torch.randn(4, 2), h)
    loss = net(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    @@
""",
    ("detach-held-state", "the model keeps its state over several moments of a batch"): HEAD + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.memory = nn.RNNCell(2, 2), torch.zeros(4, 2)

    def forward(self, x):
        memory = self.memory
        memory = self.cell(x, memory)
        self.memory = memory
        return memory

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def train(loss):
    opt.zero_grad()
    loss.backward()
    opt.step()

data = torch.randn(30, 3, 4, 2)
@@
""",
    ("detach-what-is-written", "a rollout of values"): HEAD + """
values = torch.zeros(3, 4, 1)
for update in range(8):
    x = torch.randn(3, 4, 2)
    @@
    targets = values.flip(0) + 1
    for _ in range(4):
        loss = (net(x) - targets).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ("move-into-loop", "random numbers are drawn once all the same"): HEAD + """
mapper = nn.Linear(2, 2)
opt = torch.optim.SGD([*net.parameters(), *mapper.parameters()], lr=0.1)
def train(codes, x):
    opt.zero_grad()
    (net(codes) - x).pow(2).mean().backward()
    opt.step()

data = torch.randn(30, 4, 1)
@@
""",
    ("drop-earlier-cure", "beside the detach"): HEAD + """
h = torch.zeros(4, 2)
for _ in range(30):
    x = torch.randn(4, 2)
    @@
    opt.step()
""",
    ("recompute-in-closure", "a closure that only calls backward"): HEAD + """
opt = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3)
def f(x):
    opt.zero_grad()
    return net(x).pow(2).mean()

for _ in range(30):
    x = torch.randn(4, 2)
    @@
    opt.step(closure)
""",
    ("keep-the-graph", "a detach on the way to the loss"): HEAD + """
opt = torch.optim.SGD(net.parameters(), lr=0.1)
f = nn.MSELoss()
for _ in range(9):
    x, y = torch.randn(4, 2), torch.randn(4, 1)
    @@
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ("keep-the-graph", "a new tensor of losses"): HEAD + """
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(9):
    one, two = net(torch.randn(4, 2)).pow(2).mean(), net(torch.ones(4, 2)).exp().mean()
    @@
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ("stay-in-torch", "a sum of numbers"): HEAD + """
f = nn.MSELoss()
for _ in range(9):
    x, y, total = torch.randn(4, 2), torch.randn(4, 1), 0
    @@
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ("thaw-trained", "the new head is frozen with the rest"): HEAD + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(2, 4), nn.Linear(4, 3)
    def forward(self, x):
        return self.head(self.body(x).relu())

net = Net()
@@
for _ in range(9):
    opt.zero_grad()
    net(torch.randn(4, 2)).pow(2).mean().backward()
    opt.step()
""",
    ("detach-kept", "a running total for printing"): HEAD + """
total = 0
for _ in range(60):
    loss = net(torch.randn(4, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    @@
""",
    ("detach-kept", "a history of losses"): HEAD + """
history = []
for _ in range(60):
    loss = net(torch.randn(4, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    @@
""",
    ("detach-for-copy", "a tensor"): HEAD + """
import copy
for _ in range(9):
    out = net(torch.randn(4, 2))
    opt.zero_grad()
    out.pow(2).mean().backward()
    opt.step()
    @@
    print(best.mean())
""",
    ("detach-for-copy", "an attribute of a module"): HEAD + """
import copy
class Net(nn.Linear):
    def forward(self, x):
        self.seen = super().forward(x).tanh()
        return self.seen

net = Net(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(9):
    opt.zero_grad()
    net(torch.randn(4, 2)).pow(2).mean().backward()
    opt.step()
    @@
""",
    ("reduce-loss", "a loss for each sample"): HEAD + """
for _ in range(9):
    loss = net(torch.randn(4, 2)).pow(2)
    opt.zero_grad()
    @@
    opt.step()
""",
    ("out-of-place", "an augmented assignment"): HEAD + """
for _ in range(9):
    x = net(torch.randn(4, 2))
    @@
    opt.zero_grad()
    h.pow(2).mean().backward()
    opt.step()
""",
    ("out-of-place", "a method"): HEAD + """
for _ in range(9):
    x = net(torch.randn(4, 2))
    @@
    opt.zero_grad()
    h.pow(2).mean().backward()
    opt.step()
""",
    ("out-of-place", "a keyword"): HEAD + """
import torch.nn.functional as F
for _ in range(9):
    h = net(torch.randn(4, 2)).tanh()
    @@
    opt.zero_grad()
    r.pow(2).mean().backward()
    opt.step()
""",
    ("mark-input", "where the points are made"): HEAD + """
net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(9):
    @@
    opt.zero_grad()
    slope.pow(2).mean().backward()
    opt.step()
""",
    ("mark-input", "marked too late"): HEAD + """
net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(9):
    x = torch.randn(8, 2)
    @@
    opt.zero_grad()
    slope.pow(2).mean().backward()
    opt.step()
""",
    ("write-without-grad", "updates by hand"): HEAD + """
w, b = torch.zeros(2, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
for _ in range(9):
    (torch.randn(4, 2) @ w + b - 1).pow(2).mean().backward()
    @@
    w.grad, b.grad = None, None
""",
    ("write-without-grad", "an initialisation"): HEAD + """
@@
for _ in range(9):
    opt.zero_grad()
    net(torch.randn(4, 2)).pow(2).mean().backward()
    opt.step()
""",
}  # fmt: skip
PROGRAMS["keep-graph", "two losses of one network"] = PROGRAMS["one-backward", "two losses of one network"]


def embedded(program: str, code: str) -> str:
    """The program with the code in its gap, at the gap's indentation."""
    [gap] = [line for line in program.splitlines() if line.strip() == "@@"]
    return program.lstrip("\n").replace(gap, textwrap.indent(code.rstrip("\n"), gap.partition("@@")[0]))


def test_every_repair_has_examples():
    assert len(REPAIRS) >= 18
    for kind in REPAIRS:
        assert kind.name and kind.__doc__ and any(e.after is not None for e in kind.examples), kind


@pytest.mark.parametrize("key", EXAMPLES, ids="-".join)
def test_an_example_is_python_and_changes_something(key):
    example: Example = EXAMPLES[key]
    ast.parse(example.before)
    assert (example.after is None) == example.title.startswith("leave alone")
    assert example.before.endswith("\n") and example.after != example.before
    if example.after is not None:
        ast.parse(example.after)


def patched(program: str, trial) -> str:
    return read_patch(trial.diff, {"train.py": program.encode()})["train.py"].decode()


@pytest.mark.parametrize("key", [k for k, e in EXAMPLES.items() if e.after is not None], ids="-".join)
def test_an_example_is_what_the_repair_does(analyse, key):
    example = EXAMPLES[key]
    assert key in PROGRAMS, "no program shows this example at work"
    before, after = (embedded(PROGRAMS[key], code) for code in (example.before, example.after))
    asked = {"leaks": True} if key[0] == "detach-kept" else {}
    outcome = analyse(before, **asked)
    found = [patched(before, outcome.chosen)] if outcome.chosen else []
    if found != [after]:  # another patch is as good and as small
        outcome = analyse(before, all=True, **asked)
        level = Level.DISPLAY_ONLY if key[0] == "reduce-loss" else Level.SAFE
        found = [patched(before, trial) for trial in outcome.trials if trial.level is level]
    assert (outcome.status is Status.REPAIRED) is (key[0] != "reduce-loss"), outcome.diagnosis
    assert after in found
    assert any(
        key[0] in t.candidate.remedy.split("+") for t in outcome.trials if t.diff and patched(before, t) == after
    )


ALONE = {
    ("clone-operand", "leave alone: the optimizer changed the value"): HEAD + """
other = nn.Sequential(nn.Linear(1, 3), nn.Tanh(), nn.Linear(3, 1))
opt2 = torch.optim.SGD(other.parameters(), lr=0.1)
for _ in range(9):
    out = net(torch.randn(4, 2))
    first, loss = other(out.detach()).mean(), other(out).pow(2).mean()
    first.backward()
    opt = opt2
    @@
""",
    ("create-graph", "leave alone: the gradient is only looked at"): HEAD + """
for _ in range(9):
    x = torch.randn(4, 2, requires_grad=True)
    out = net(x).exp()
    @@
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
""",
    ("drop-earlier-cure", "leave alone: a second loss goes through the same graph"): HEAD + """
h = torch.zeros(4, 2)
for _ in range(9):
    h = cell(torch.randn(4, 2), h)
    x = h
    @@
    opt.step()
""",
    ("detach", "leave alone: the tensor is read again while its graph lives"): HEAD + """
criterion = nn.MSELoss()
for _ in range(9):
    x, y = torch.randn(4, 2), torch.randn(4, 1)
    opt.zero_grad()
    @@
    opt.step()
    print(loss.item(), loss.pow(2))
""",
    ("detach-for-numpy", "leave alone: the values have no graph"): HEAD + """
import numpy as np
for _ in range(9):
    x, y = torch.randn(4, 2), torch.randn(4, 1)
    @@
    loss = net(x).pow(2).mean() + torch.from_numpy(np.square(net(x).numpy())).mean()
    opt.zero_grad()
    loss.backward()
""",
    ("drop-requires-grad", "leave alone: an optimizer holds it"): HEAD + """
from torch.optim import SGD
@@
opt = SGD([w], 0.1)
scale = w.exp()
for _ in range(9):
    loss = (scale * torch.randn(3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ("keep-graph", "leave alone: the graph is an earlier step's"): HEAD + """
xs, h = torch.randn(9, 4, 2), cell(torch.zeros(4, 2))
def f(x, old):
    global h
    h = cell(x, old)
    opt.zero_grad()
    return h.pow(2).mean()

@@
    opt.step()
""",
    ("move-below-step", "leave alone: both losses share a forward pass"): HEAD + """
f, g, k = nn.Linear(2, 4), nn.Linear(4, 1), nn.Linear(4, 1)
opt_a = torch.optim.SGD([*f.parameters(), *g.parameters()], lr=0.1)
opt_b = torch.optim.SGD([*f.parameters(), *k.parameters()], lr=0.1)
for _ in range(9):
    x = torch.randn(4, 2)
    @@
    a, b = a.pow(2).mean(), b.pow(2).mean()
    a.backward()
    opt_a.step()
    b.backward()
    opt_b.step()
""",
    ("move-out-of-no-grad", "leave alone: only labels are made in it"): HEAD + """
teacher = nn.Linear(2, 1)
for _ in range(9):
    x = torch.randn(4, 2)
    @@
    opt.zero_grad()
    (net(x) - label).pow(2).mean().backward()
    opt.step()
""",
    ("one-backward", "leave alone: an optimizer steps between them"): HEAD + """
for _ in range(9):
    out = torch.tanh(net(torch.randn(4, 2)))
    a, b = out.mean(), out.pow(2).mean()
    opt.zero_grad()
    @@
    opt.step()
""",
    ("keep-the-graph", "leave alone: the loss has another way to the parameters"): HEAD + """
f = nn.MSELoss()
for _ in range(9):
    x = torch.randn(4, 2)
    opt.zero_grad()
    @@
    loss.backward()
    opt.step()
    print(net.bias.numpy())
""",
    ("stay-in-torch", "leave alone: the number is only printed"): HEAD + """
for _ in range(9):
    loss = net(torch.randn(4, 2)).pow(2).mean().detach()
    opt.zero_grad()
    @@
    loss.backward()
    opt.step()
""",
    ("thaw-trained", "leave alone: what the optimizer holds learns"): HEAD + """
net = nn.Sequential()
net.body, net.head = nn.Linear(2, 4), nn.Linear(4, 1)
@@
opt = torch.optim.SGD(net.head.parameters(), lr=0.1)
for _ in range(9):
    opt.zero_grad()
    net(torch.randn(4, 2)).pow(2).mean().detach().backward()
    opt.step()
""",
    ("detach-kept", "leave alone: the sum is backpropagated"): HEAD + """
for _ in range(60):
    total, loss = 0, net(torch.randn(4, 2)).pow(2).mean()
    opt.zero_grad()
    @@
    opt.step()
""",
    ("detach-for-copy", "leave alone: parameters are leaves"): HEAD + """
import copy
for _ in range(9):
    loss = net(torch.randn(4, 2)).pow(2).mean().detach()
    opt.zero_grad()
    @@
    loss.backward()
    opt.step()
""",
    ("reduce-loss", "leave alone: values with weights of their own"): HEAD + """
weights = torch.ones(4, 1)
for _ in range(9):
    loss = net(torch.randn(4, 2)).pow(2)
    opt.zero_grad()
    @@
    loss.detach().backward()
""",
    ("out-of-place", "leave alone: nothing saved is overwritten"): HEAD + """
for _ in range(9):
    x = net(torch.randn(4, 2))
    @@
    loss = h.pow(2).mean().detach()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ("mark-input", "leave alone: the input is in the graph"): HEAD + """
for _ in range(9):
    loss = net(torch.randn(4, 2)).pow(2).mean()
    @@
    net(torch.randn(4, 2)).pow(2).mean().detach().backward()
""",
    ("write-without-grad", "leave alone: the optimizer updates"): HEAD + """
for _ in range(9):
    opt.zero_grad()
    net(torch.randn(4, 2)).pow(2).mean().backward()
    @@
    print(net.bias.numpy())
""",
    ("discarded-detach", "leave alone: detach_() works in place"): HEAD + """
h = torch.zeros(4, 2)
for _ in range(9):
    h = cell(torch.randn(4, 2), h)
    opt.zero_grad()
    net(h).pow(2).mean().backward()
    opt.step()
    @@
""",
}  # fmt: skip


@pytest.mark.parametrize("key", [k for k, e in EXAMPLES.items() if e.after is None], ids="-".join)
def test_what_a_repair_leaves_alone(analyse, key):
    assert key in ALONE, "no program shows that this is left alone"
    asked = {"leaks": True} if key[0] == "detach-kept" else {}
    outcome = analyse(embedded(ALONE[key], EXAMPLES[key].before), **asked)
    assert not any(
        key[0] in trial.candidate.remedy.split("+") and trial.level is Level.SAFE for trial in outcome.trials
    )


def test_a_saved_operand_may_need_no_gradient(analyse):
    key = ("clone-operand", "rows of a tensor are computed from earlier rows")
    program = PROGRAMS[key].replace("torch.randn(2) @ m", "torch.randn(2)")
    before, after = (embedded(program, code) for code in (EXAMPLES[key].before, EXAMPLES[key].after))
    outcome = analyse(before)
    assert outcome.chosen is not None and patched(before, outcome.chosen) == after
