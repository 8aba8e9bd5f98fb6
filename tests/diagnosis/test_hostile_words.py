"""Whole analyses of runs whose words are spoilt on the way: an outcome or one clear line, never a traceback of ours."""

from __future__ import annotations

import random
from typing import Any

import pytest

from autodetach.diagnosis import reader
from autodetach.errors import AutodetachError
from autodetach.model import Status
from autodetach.report.interface import make
from autodetach.settings import FORMATS

BROKEN = """\
import torch

def remember(state, h):
    state["h"] = h
    return state

cell = torch.nn.GRUCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
state, total = {"h": torch.zeros(1, 3)}, 0.0
for _ in range(12):
    out = cell(torch.ones(1, 2), state["h"])
    state = remember(state, out)
    loss = out.pow(2).sum()
    total = total + loss
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WORDS = (None, True, -3, 0, 7, 0.5, float("nan"), float("inf"), 10**400, "aa", "é", "tensor", "", "\x1b[31m", "t.py")


def something(rng: random.Random, depth: int = 3) -> Any:
    if depth and rng.random() < 0.5:
        inner = [something(rng, depth - 1) for _ in range(rng.randrange(4))]
        return inner if rng.random() < 0.6 else {rng.choice(("1", "aa", "x")): value for value in inner}
    return rng.choice(WORDS)


def spoilt(value: Any, rng: random.Random, often: float) -> Any:
    if rng.random() < often:
        return something(rng)
    if isinstance(value, dict):
        return {key: spoilt(inner, rng, often) for key, inner in value.items()}
    return [spoilt(inner, rng, often) for inner in value] if isinstance(value, list | tuple) else value


def on_the_way(events, rng, often):
    for event in events:
        chance = rng.random()
        if chance > often * 10:
            yield {key: value if key == "event" else spoilt(value, rng, often) for key, value in event.items()}
        if chance > 1 - often * 10:
            yield rng.choice(events)


@pytest.mark.parametrize("often", [0.0003, 0.001, 0.004, 0.02])
@pytest.mark.parametrize("seed", range(3))
def test_an_analysis_of_spoilt_words(analyse, monkeypatch, seed, often):
    rng, plain = random.Random(f"{seed} {often}"), reader.read
    monkeypatch.setattr(reader, "read", lambda events, process="": plain(list(on_the_way(events, rng, often)), process))
    try:
        outcome = analyse(BROKEN)
    except AutodetachError as error:
        assert str(error)
    else:
        assert outcome.status in Status
        for name in FORMATS:
            make(name).render(outcome)
