"""What recording costs a step: the same training plain, recorded and in torch's anomaly mode, in turns.

Processor time, on one thread. Each measurement is a forked child of one process that has imported torch, as the runs of
autodetach are.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.measure import ROOT

NETS = {"40 tiny layers": (40, 8, 16, 100), "4 large layers": (4, 1024, 256, 8)}
QUICK = {"4 tiny layers": (4, 8, 16, 5)}
"""Layers, width, batch, steps."""
VARIANTS = ("plain", "recorder", "reference", "anomaly")


@dataclass(frozen=True)
class Step:
    """Milliseconds a step, and the ratios to a plain one."""

    net: str
    plain: float
    recorder: float
    reference: float
    anomaly: float


def measure(rounds: int, quick: bool = False) -> list[Step]:
    _load_agent()
    rows = []
    for net, sizes in (QUICK if quick else NETS).items():
        seconds: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
        for _ in range(rounds):
            for variant in VARIANTS:
                seconds[variant].append(_forked(variant, *sizes))
        plain = median(seconds["plain"])
        # of each round its own ratio: a machine that is busy for a while is busy for both
        ratios = {v: median(t / p for t, p in zip(seconds[v], seconds["plain"], strict=True)) for v in VARIANTS[1:]}
        rows.append(Step(net, plain * 1000, **ratios))
    return rows


def _load_agent() -> None:
    import torch

    here = ROOT / "autodetach" / "agent"
    spec = importlib.util.spec_from_file_location(
        "_autodetach_agent", here / "__init__.py", submodule_search_locations=[str(here)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["_autodetach_agent"] = module
    spec.loader.exec_module(module)
    torch.set_num_threads(1)


def _forked(variant: str, layers: int, width: int, batch: int, steps: int) -> float:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, json.dumps(_train(variant, layers, width, batch, steps)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        seconds = float(json.loads(pipe.read()))
    os.waitpid(pid, 0)
    return seconds


def _train(variant: str, layers: int, width: int, batch: int, steps: int) -> float:
    """Seconds a step: the median of ``steps``, after three that warm up. The program is started as by the server."""
    from _autodetach_agent.program import Program  # type: ignore[import-not-found]

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(PROGRAM)
        Path(folder, "out").touch()
        request = {"folder": folder, "cwd": folder, "entry": "train.py", "events": os.path.join(folder, "events")}
        request["argv"] = [str(n) for n in (layers, width, batch, steps, variant == "anomaly")]
        os.chdir(folder)
        if variant in ("recorder", "reference"):
            from _autodetach_agent import run

            run.record({**request, "mode": "observe" if variant == "recorder" else variant})
        status, trace = Program(request).run()
        if status:
            raise RuntimeError(trace)
        return median(json.loads(Path(folder, "out").read_text())[3:])


PROGRAM = """
import json
import sys
import time

import torch
from torch import nn

layers, width, batch, steps = map(int, sys.argv[1:5])
torch.manual_seed(0)
body = []
for _ in range(layers):
    body += [nn.Linear(width, width), nn.Tanh()]
net = nn.Sequential(*body)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
inputs = torch.randn(batch, width)


def step():
    optimizer.zero_grad()
    net(inputs).square().mean().backward()
    optimizer.step()


taken = []
with torch.autograd.set_detect_anomaly(sys.argv[5] == "True"):
    for _ in range(steps + 3):
        begun = time.process_time()
        step()
        taken.append(time.process_time() - begun)
with open("out", "w") as file:
    json.dump(taken, file)
"""
