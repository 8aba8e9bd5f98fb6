"""What the agent says of a program: who made what where, steps, losses, gradients, failures."""

from __future__ import annotations

import itertools
import math

import pytest

from autodetach.model import FailureKind


def code_at(source: str, frame) -> str:
    """The very code that a frame's position covers: columns count bytes."""
    lines = source.encode().split(b"\n")
    span = frame.span
    assert span.line == span.end_line
    return lines[span.line - 1][span.column : span.end_column].decode()


def told(source: str, chain) -> list[tuple[str, str]]:
    return [(frame.function, code_at(source, frame)) for frame in chain]


CARRIED = """\
import torch

größe = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([größe], 0.1)

class Zelle(torch.nn.Module):
    def forward(self, x):
        "ä"; ö = torch.tanh(x * größe); return ö

def verlust(netz, h):
    é = netz(h + 1); return é, é.sum()

netz, zustand = Zelle(), torch.zeros(3)
for schritt in range(3):
    optimizer.zero_grad()
    "ü"; zustand, v = verlust(netz, zustand)
    "日本"; v.backward()
    optimizer.step()
"""


def test_the_failing_backward_and_its_place(run):
    said = run(CARRIED).recording
    assert said.failure is not None
    assert said.failure.kind is FailureKind.SECOND_BACKWARD
    assert (said.failure.steps, said.failure.backwards) == (1, 1)
    assert told(CARRIED, said.failure.chain) == [("<module>", "v.backward()")]
    assert "a second time" in said.failure.message
    assert (said.how, said.progress) == ("error", 1)
    assert said.traceback.startswith("Traceback (most recent call last):\n")
    assert "autodetach" not in said.traceback


def test_who_made_a_stale_tensor_and_who_reads_it(run):
    said = run(CARRIED, mode="reference").recording
    first = said.pairs[0]
    assert told(CARRIED, said.chain(first.birth[0])) == [
        ("forward", "torch.tanh(x * größe)"),
        ("verlust", "netz(h + 1)"),
        ("<module>", "verlust(netz, zustand)"),
    ]
    assert told(CARRIED, said.chain(first.site)) == [("verlust", "h + 1"), ("<module>", "verlust(netz, zustand)")]
    assert (first.made, first.read, first.state, first.operand) == ((0, 0), (1, 1), "freed", (0,))
    assert first.updated_between
    [leaf] = first.leaves
    assert leaf.optimizer == (0, 0) and leaf.parameter and leaf.shape == (3,)
    assert all(frame.editable and frame.span.file == "main.py" for frame in said.chain(first.site))


def test_the_site_is_the_whole_chain_of_calls(run):
    """One line of a function, called from two lines: two sites; called twice from one line: one."""
    source = """\
import torch
w = torch.ones(2, requires_grad=True)
def f(x):
    return x * w
for _ in range(2):
    a = f(torch.ones(2))
b = f(torch.zeros(2))
(a + b).sum().backward()
"""
    said = run(source)
    chains = [e["chain"] for e in said.named("site")]
    assert [c[1][1] for c in chains if c[0][1] == 4 and len(c) == 2] == [6, 7]
    assert len({e["site"] for e in said.named("site")}) == len(chains)
    assert [e["site"] for e in run(source).named("site")] == [e["site"] for e in said.named("site")]


def test_code_of_others_is_no_code_of_the_users(run):
    files = {
        "main.py": "import torch, lib.net\nfrom pkg import f\n"
        "w = torch.ones(1, requires_grad=True)\nf(w).backward()\nlib.net.g(w).backward()\n",
        "lib/net.py": "def g(w):\n    return (w + 1).sum()\n",
        "venv/site-packages/pkg.py": "def f(w):\n    return (w * 2).sum()\n",
    }
    files["main.py"] = "import sys; sys.path.append('venv/site-packages')\n" + files["main.py"]
    frames = {row[0].rpartition("/")[2]: row for e in run(files).named("site") for row in e["chain"]}
    assert frames["net.py"][0] == "lib/net.py" and frames["net.py"][6] is True
    assert frames["pkg.py"][0].startswith("/") and frames["pkg.py"][6] is False
    assert not any("torch/" in e[0] for e in frames.values())


TRAINING = """\
import torch
w = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
u = torch.nn.Parameter(torch.tensor([5.0]))
idle = torch.nn.Parameter(torch.tensor([1.0]))
first = torch.optim.SGD([w], lr=0.1)
second = torch.optim.SGD([{"params": [u]}, {"params": [idle]}], lr=0.5)
for _ in range(2):
    first.zero_grad()
    (w * w).sum().backward()
    first.step()
    loss = u.sum() * 2
    loss.backward()
    torch.autograd.backward([loss.detach() * u.sum(), (u * 3).sum()])
    second.step()
    second.zero_grad()
(g,) = torch.autograd.grad((w * w).sum(), w, create_graph=True)
(g * g).sum().backward()
"""


def test_steps_losses_and_gradients(run):
    said = run(TRAINING)
    assert (said.status, said.stderr) == (0, "")
    recording = said.recording
    assert [(s.n, s.optimizer, s.backwards) for s in recording.steps] == [(1, 0, 1), (2, 1, 3), (3, 0, 4), (4, 1, 6)]
    norms = [[p[0] for p in s.params] for s in recording.steps]
    # w: 3, 4 -> times 0.8; u: 5 - 0.5 * (2 + 10 + 3), then the same from there
    assert norms[0] == pytest.approx([4.0])
    assert norms[1] == pytest.approx([2.5, 1.0])
    assert norms[2] == pytest.approx([3.2])
    assert [list(s.grads) for s in recording.steps[:2]] == [[pytest.approx(10.0)], [pytest.approx(15.0), None]]
    losses = [b.loss for b in recording.backwards]
    assert losses[:3] == [(25.0,), (10.0,), (50.0, 15.0)]
    assert [b.steps for b in recording.backwards] == [0, 1, 1, 2, 3, 3, 4, 4]
    assert [(b.call, b.create) for b in recording.backwards[-2:]] == [("grad", True), ("backward", False)]
    assert (recording.how, recording.progress, recording.has_optimizer) == ("exit", 4, True)


def test_equal_parameters_have_equal_fingerprints_and_others_have_not(run):
    source = """\
import torch
a = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
b = torch.nn.Parameter(torch.tensor([3.0, 2.0, 1.0]))
c = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
d = torch.nn.Parameter(torch.tensor([1.0, float("nan"), float("inf")]))
e = torch.nn.Parameter(torch.zeros(0))
f = torch.nn.Parameter(torch.zeros(2, 2, dtype=torch.complex64))
torch.optim.SGD([a, b, c, d, e, f], lr=0.1).step()
"""
    [step] = run(source).recording.steps
    a, b, c, d, e, f = step.params
    assert a == c != b and a[0] == b[0]
    assert d[0] == "nan" and e == f == (0.0, 0.0)


def test_which_backward_feeds_which_step(run):
    source = """\
import torch
net, other = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
opt = torch.optim.SGD(net.parameters(), 0.1)
opt2 = torch.optim.SGD(other.parameters(), 0.1)
x = torch.ones(1)
net(x).sum().backward()          # 1: thrown away
opt.zero_grad()
net(other(x)).sum().backward()   # 2: both
opt.step()
net.zero_grad()
other(x).sum().backward()        # 3
opt2.step()
"""
    recording = run(source, mode="reference").recording
    assert [s.uses for s in recording.steps] == [(frozenset({2}),), (frozenset({2, 3}),)]


def test_training_by_hand(run):
    source = """\
import torch
w = torch.tensor([2.0], requires_grad=True)
v = torch.zeros(1).requires_grad_()
for _ in range(3):
    ((w + v) ** 2).sum().backward()
    with torch.no_grad():
        w -= 0.25 * w.grad
        w.grad.zero_()
"""
    recording = run(source).recording
    assert not recording.steps and recording.progress == 3
    values = [{name: fingerprint[0] for name, _, fingerprint in b.leaves} for b in recording.backwards]
    assert [sorted(v.values()) for v in values] == [[0.0, 2.0], [0.0, 1.0], [0.0, 0.5]]
    assert len({name for v in values for name in v}) == 2


def test_where_grad_mode_was_off(run):
    source = """\
import torch
net = torch.nn.Linear(2, 2)
x = torch.ones(1, 2)
with torch.no_grad():
    out = net(x)
    y = x * 2
loss = (out - y).sum()
loss.backward()
"""
    said = run(source, mode="shadow").recording
    assert said.failure.kind is FailureKind.NO_GRAD_FN
    on_path = {(code_at(source, said.chain(s.site)[0]), s.reason) for s in said.shades if s.on_path}
    assert ("net(x)", "grad-off") in on_path
    assert all("x * 2" not in code for code, _ in on_path)
    [switch] = {s.switch for s in said.shades if s.switch}
    assert said.chain(switch)[0].span.line == 4


FAILURES = """\
import torch, copy
w = torch.ones(2, requires_grad=True)
def attempt(f):
    try:
        f()
    except Exception as e:
        print(type(e).__name__)
    else:
        print("fine")
    w.grad = None
    (w * 1).sum().backward()  # it goes on
def twice():
    loss = w.exp().sum(); loss.backward(); loss.backward()
def in_place():
    y = w.exp(); y += 1; y.sum().backward()
def unused():
    torch.autograd.grad((w * 2).sum(), torch.ones(1))
def no_graph():
    torch.ones(1).backward()
def no_graph_grad():
    torch.autograd.grad(torch.ones(1), w)
def leaf():
    w.add_(1)
def view_of_leaf():
    w[0] = 1
def to_numpy():
    (w * 2).numpy()
def copied():
    copy.deepcopy(w * 2)
def not_scalar():
    (w * 2).backward()
def shape():
    torch.ones(2) @ torch.ones(3)
def value():
    raise ValueError("Trying to backward through the graph a second time")
def runtime():
    raise RuntimeError("CUDA out of memory")
for f in (twice, in_place, unused, no_graph, no_graph_grad, leaf, view_of_leaf, to_numpy, copied, not_scalar,
          shape, value, runtime):
    attempt(f)
"""


def test_each_failure_is_told_by_its_kind(run):
    said = run(FAILURES)
    assert said.stdout.count("Error") == 13 and "fine" not in said.stdout
    assert [e["kind"] for e in said.named("failure")] == [
        "second-backward", "in-place", "unused-input", "no-grad-fn", "no-grad-fn", "leaf-in-place", "leaf-in-place",
        "numpy-on-grad", "deepcopy-non-leaf", "non-scalar-root",
    ]  # fmt: skip


def test_failure_in_a_function_of_torch_that_calls_backward(run):
    source = """\
import torch
from torch.autograd.functional import jacobian
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        ctx.saved_tensors
        return g * 2
w = torch.ones(2, requires_grad=True)
y = Double.apply(w)
y.sum().backward()
y.sum().backward()
"""
    said = run(source).recording
    assert said.failure.kind is FailureKind.SECOND_BACKWARD
    assert said.failure.chain[0].span.line == 15
    said = run(source, mode="reference").recording
    assert [code_at(source, said.chain(p.birth[0])[0]) for p in said.pairs] == ["Double.apply(w)"]


def test_live_nodes_are_counted_from_a_step_on(run):
    source = """\
import torch
w = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([w], 0.1)
kept = []
for _ in range(6):
    y = (w * 2).exp()
    kept.append(y)
    y.sum().backward()
    optimizer.step()
"""
    recording = run(source, horizon={"most": 5, "live_from": 2}).recording
    assert [n for n, _ in recording.live] == [2, 3, 4, 5]
    nodes = [count for _, count in recording.live]
    assert {b - a for a, b in itertools.pairwise(nodes)} == {2}
    assert (recording.how, recording.progress) == ("stopped", 5)
    flat = run(source.replace("    kept.append(y)\n", ""), horizon={"most": 5, "live_from": 2}).recording
    assert len({count for _, count in flat.live}) == 1


def test_a_horizon_with_time_left(run):
    """``least`` steps are enough once the seconds are over."""
    source = """\
import time, torch
w = torch.ones(1, requires_grad=True)
optimizer = torch.optim.SGD([w], 0.1)
while True:
    w.sum().backward()
    optimizer.step()
    time.sleep(0.05)
"""
    recording = run(source, horizon={"most": 500, "least": 3, "seconds": 0.3}).recording
    assert recording.how == "stopped" and 3 <= recording.progress < 100


def test_numbers_that_json_has_not(run):
    source = """\
import torch
w = torch.ones(1, requires_grad=True)
(w * float("nan")).sum().backward()
(w * float("inf")).sum().backward()
(w * 2j).sum().abs().backward()
"""
    losses = [b.loss for b in run(source).recording.backwards]
    assert losses == [("nan",), ("inf",), (2.0,)] and not math.isnan(losses[2][0])
