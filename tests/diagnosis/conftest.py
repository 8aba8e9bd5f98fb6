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
