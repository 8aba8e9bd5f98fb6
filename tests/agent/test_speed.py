"""What makes runs cheap changes nothing that is seen, and costs the same at every step."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

AGENT = Path(__file__).parents[2] / "autodetach" / "agent"

HEAD = """
import torch
from torch import nn

torch.manual_seed(0)
cell = nn.RNNCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
h = torch.zeros(1, 3)
"""


ASKING = [
    "from torch._dynamo.utils import counters; import torch._dynamo.utils as u; print(u.counters is counters)",
    "print(torch.compile(lambda t: t * 2, backend='eager')(torch.ones(2)).sum())",
    "print(torch.func.grad(lambda t: (t * t).sum())(torch.ones(2)))",
    "import torch._dynamo as d; print(sys.modules['torch._dynamo'] is d is torch._dynamo, d.config.__name__)",
]
"""What uses the real module, one way or another, between two steps."""


def test_who_asks_for_the_compiler_gets_it():
    """Each in a fork of its own with the stand-in, and one after the other without: the same is printed."""
    start = f"import os, sys; sys.path.insert(0, {str(AGENT)!r}); import dynamo\n"
    step = "opt.zero_grad(); opt.step(); opt.state_dict()\n"
    plain = start + HEAD + step + "\n".join(f"{asking}\n{step}" for asking in ASKING)
    standing_in = f"{start}dynamo.install()\n{HEAD}" + "".join(
        "pid = os.fork()\nif pid == 0:\n"
        f"    {step}    assert isinstance(sys.modules['torch._dynamo'], dynamo.StandIn)\n"
        f"    {asking}\n    {step}    sys.stdout.flush(); os._exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
        for asking in ASKING
    )
    said = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        for script in (plain, standing_in + "assert dynamo.wanted()\n")
    ]
    assert said[0] == said[1] and said[0].count("\n") == len(ASKING)


def test_births_are_forgotten_with_their_graph():
    births = _agent_module("births")
    import torch

    table = births.Births()
    kept = []
    weight = torch.ones(1, requires_grad=True)
    table._forget_at = 0
    for n in range(500):
        start = births.sequence()
        value = weight * n
        table.add(start, births.sequence(), f"site{n}", 0)
        if n % 100 == 0:
            kept.append(value)
        if n == 250:
            table._forget_at = 0
            table.forget()
    table._forget_at = 0
    table.forget()
    assert [table.of(value)[0] for value in (*kept, value)] == ["site0", "site100", "site200", "site300", "site400",
                                                               "site499"]  # fmt: skip
    assert len(table._table()[0]) == 6


def test_measured_together_is_as_alone():
    trajectory = _agent_module("trajectory")
    import torch

    torch.manual_seed(0)
    shapes = [(3,), (4, 5), (), (0,), (70, 70), (200, 200), (3, 2)]
    tensors = [torch.randn(shape) for shape in shapes] + [torch.randn(3).double(), torch.randn(2, dtype=torch.cfloat)]
    for tensor in tensors:
        tensor.grad = torch.randn_like(tensor) * 1e-30
    tensors[2].grad = None
    tensors[1].grad = torch.zeros(4, 5)
    apart = [trajectory.fingerprint(t) for t in tensors]
    assert trajectory.fingerprints(tensors) == [[pytest.approx(n) for n in one] for one in apart]
    for tensor, (norm, _) in zip(tensors, apart, strict=True):
        assert norm == pytest.approx(float(torch.linalg.vector_norm(tensor.to(torch.complex128))))
    norms = trajectory.gradient_norms(tensors)
    assert norms == [t.grad if t.grad is None else pytest.approx(trajectory.gradient_norm(t)) for t in tensors]
    assert trajectory.marks(tensors) == "++-++++++"
    swapped = torch.randn(2 * trajectory._PIECE)
    first, second = swapped.split(trajectory._PIECE)
    a, b = trajectory.fingerprints([swapped, torch.cat([second, first])])
    assert a[0] == pytest.approx(b[0]) and a[1] != pytest.approx(b[1])


def _agent_module(name):
    import importlib

    from autodetach.agent import serve

    if serve.PACKAGE not in sys.modules:
        serve.load_package()
    return importlib.import_module(f"{serve.PACKAGE}.{name}")


FAILS_LATE = (
    HEAD
    + """
import resource, sys
for step in range({last} + 1):
    opt.zero_grad()
    new = cell(torch.ones(1, 2), h)
    new.sum().backward()
    opt.step()
    if step >= {last} - 1:
        h = new
    if step == 20:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / before, file=sys.stderr)
"""
)


@pytest.mark.parametrize("mode", ["observe", "reference"])
def test_memory_does_not_grow_with_the_steps_before_a_failure(run, mode):
    ran = run(FAILS_LATE.replace("h = new", "h = new.detach()").format(last=3000), mode=mode)
    assert ran.status == 0 and float(ran.stderr) < 1.1


def test_steps_long_before_a_failure_are_not_measured_one_by_one(run):
    ran = run(FAILS_LATE.format(last=1000), horizon={"live_from": 990})
    steps = ran.recording.steps
    assert ran.recording.failure.steps == 1000
    assert len(steps) == 1000 and all(s.params for s in steps[:32]) and all(s.params for s in steps[990:])
    assert 100 < sum(bool(s.params) for s in steps) < 250
    assert {s.grads for s in steps[500:505]} == {(1.0, 1.0, 1.0, 1.0)}  # only that all of them are there
    assert {s.grads[1] for s in steps[:32]} == {0.0}  # the state is zero: one gradient is, too


LONG_GRAPH = """
import torch
w = torch.nn.Parameter(torch.ones(2))
opt = torch.optim.SGD([w], lr=0.01)
s = torch.ones(2)
for step in range(3):
    for _ in range(50_000 if step == 0 else 2):
        s = torch.tanh(s * w)
    s.sum().backward()
    opt.step()
print("through")
"""


def test_a_graph_of_a_hundred_thousand_nodes_is_let_go(run):
    ran = run(LONG_GRAPH, mode="reference", horizon={"live_from": 1})
    assert (ran.status, ran.stdout) == (0, "through\n")
    assert len(ran.recording.pairs) == 2
