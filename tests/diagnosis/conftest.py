"""What real runs say: the events of a program with a stale state, and of one whose loss has no graph."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from autodetach.runner.project import Project

STALE = """\
import torch

w = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([w], 0.1)

def step(h):
    return torch.tanh(h * w)

h = torch.zeros(3)
for _ in range(4):
    h = step(h + 1)
    out = h * w
    optimizer.zero_grad()
    out.sum().backward()
    optimizer.step()
"""
LOST = """\
import torch

net = torch.nn.Linear(2, 1)
with torch.no_grad():
    out = net(torch.ones(1, 2))
out.sum().backward()
"""


REFUSED = """\
import torch

w = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([w], 0.1)
kept = []
for _ in range(9):
    loss = (w * 2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(loss)
    w += 1
    w.numpy()
"""
FROZEN = """\
import torch

net = torch.nn.Linear(2, 1)
net.requires_grad_(False)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
net(torch.ones(1, 2)).sum().backward()
"""
UNREACHED = """\
import torch

w = torch.ones(2, requires_grad=True)
x = torch.rand(2)
y, z = (w * x).sum(), x.clone().requires_grad_()
torch.autograd.grad(y, [x, z])
"""
KEPT = """\
import torch

w = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([w], 0.1)
kept = []
for _ in range(12):
    loss = (w * 2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(loss)
"""
MORE = {
    "mended": (REFUSED, {"mend": ["numpy-on-grad", "leaf-in-place"]}),
    "frozen": (FROZEN, {}),
    "traced": (UNREACHED, {}),
    "leaking": (KEPT, {}),
}


@pytest.fixture(scope="session")
def sibling_events(one_server, tmp_path_factory) -> dict[str, list[dict[str, Any]]]:
    """The same of runs for the other errors."""
    found = {}
    for name, (text, interventions) in MORE.items():
        folder: Path = tmp_path_factory.mktemp(name)
        (folder / "train.py").write_text(text)
        with one_server(Path(sys.executable), Project.discover(folder / "train.py", None, folder)) as session:
            mode = "shadow" if name == "frozen" else name
            request = {"mode": mode, "argv": [], "entry": "train.py", "interventions": interventions}
            found[name] = list(session.run({**request, "horizon": {"most": 11, "live_from": 0}}, timeout=60).events)
    return found


@pytest.fixture(scope="session")
def real_events(one_server, tmp_path_factory) -> dict[str, list[dict[str, Any]]]:
    """By the run's mode; sent one after another, all kinds of events occur."""
    found = {}
    for mode, text in (("observe", STALE), ("reference", STALE), ("shadow", LOST)):
        folder: Path = tmp_path_factory.mktemp(mode)
        (folder / "train.py").write_text(text)
        with one_server(Path(sys.executable), Project.discover(folder / "train.py", None, folder)) as session:
            request = {"mode": mode, "argv": [], "entry": "train.py", "horizon": {"most": 3, "live_from": 1}}
            if mode == "reference":
                request["probes"] = True
            found[mode] = list(session.run(request, timeout=60).events)
    return found


@pytest.fixture
def added():
    """The lines that a diff adds."""
    return lambda diff: [line[1:] for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]
