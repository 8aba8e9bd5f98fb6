"""Anybody's patch to a real program: the expert's is safe, the tempting wrong ones never are, and it is said why."""

from __future__ import annotations

import re

import pytest

from autodetach.model import Level, Rejected
from autodetach.source.diff import unified_diff

RIGHT = [
    ("char-lm-hidden-tuple", "after"),
    ("gan-discriminator-first", "after"),
    ("gan-discriminator-first", "after-retain"),
    ("cached-label-embeddings", "after"),
    ("no-grad-on-train-step", "after"),
    ("two-heads-two-backwards", "after"),
    ("two-heads-two-backwards", "after-retain"),
    ("running-total-backward", "after"),
    ("attention-mask-in-place", "after"),
]
WRONG = [
    ("char-lm-hidden-tuple", "wrong-reset", "same training", "from step 2 on the parameters differ"),
    ("char-lm-hidden-tuple", "wrong-retain", "runs", "another error comes: in-place at train.py:48, at step 2"),
    ("gan-discriminator-first", "wrong-detached-for-generator", "same training", "fed otherwise"),
    ("cached-label-embeddings", "wrong-frozen-labels", "same first step", "the first step leads to other parameters"),
    ("no-grad-on-train-step", "wrong-loss-requires-grad", "same training", "8 parameters are fed otherwise"),
    ("two-heads-two-backwards", "wrong-detached-trunk", "same training", "from step 1 on the parameters differ"),
    ("running-total-backward", "wrong-detached-sum", "same training", "at step 1 4 parameters are fed otherwise"),
    ("attention-mask-in-place", "wrong-data-write", "same training", "from step 1 on the parameters differ"),
]


def judged(analyse, found, name):
    outcome = analyse(found.before, *found.args, entry=found.entry, command="verify", patch=found.diff(name))
    [trial] = outcome.trials
    return trial


@pytest.mark.parametrize(("slug", "name"), RIGHT)
def test_the_experts_patch_is_safe(analyse, case, slug, name):
    trial = judged(analyse, case(slug), name)
    assert trial.level is Level.SAFE, trial.reason


@pytest.mark.parametrize(("slug", "name", "criterion", "why"), WRONG)
def test_a_tempting_wrong_one_is_not(analyse, case, slug, name, criterion, why):
    trial = judged(analyse, case(slug), name)
    assert trial.level is None
    [rejected] = [v for v in trial.verdicts if isinstance(v, Rejected)]
    assert rejected.criterion == criterion
    assert why in rejected.reason


def test_to_keep_the_graph_of_what_is_built_once_is_not_safe(analyse, case):
    trial = judged(analyse, case("source-mixing-weights-before-loop"), "wrong-retain")
    assert trial.level is None and "differentiates through weights updated since" in trial.reason


CARRIED = """\
import torch
torch.manual_seed(0)
cell, head = torch.nn.GRUCell(2, 4), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
h = torch.zeros(3, 4)
for _ in range(30):
    h = cell(torch.randn(3, 2), h)
    loss = head(h).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CUT = ("    h = cell(torch.randn(3, 2), h)", "    h = cell(torch.randn(3, 2), h.detach())")
BACKWARD = "    loss.backward()"
PATCHES = {
    "right": ([CUT], None),
    "right, after the step": ([("    optimizer.step()", "    optimizer.step()\n    h = h.detach()")], None),
    "detached before the loss": ([("    loss = head(h)", "    h = h.detach()\n    loss = head(h)")], "fed otherwise"),
    "state forgotten": ([("torch.randn(3, 2), h)", "torch.randn(3, 2))")], "parameters differ"),
    "no training at all": ([(BACKWARD, "    pass")], ""),
    "the loss made a leaf": ([(BACKWARD, "    loss.detach().requires_grad_().backward()")], ""),
    "stops early": ([("range(30)", "range(1)")], "it ends after 1 steps"),
    "kept": ([("loss.backward()", "loss.backward(retain_graph=True)")], "in-place"),
    "swallowed": ([(BACKWARD, "    try:\n        loss.backward()\n    except RuntimeError:\n        pass")], ""),
    "another learning rate": ([CUT, ("lr=0.1", "lr=0.2")], "from step 1 on the parameters differ"),
    "a syntax error": ([("h = cell(", "h = = cell(")], "SyntaxError"),
    "a detach that is thrown away": (
        [("    optimizer.step()", "    optimizer.step()\n    h.detach()")],
        "the same error",
    ),
}
LEAKING = (CUT[0], f"{CUT[1]}\n    seen.append(h)")


@pytest.mark.parametrize("name", PATCHES)
def test_every_way_to_patch_a_small_program(analyse, name):
    changes, why = PATCHES[name]
    trial = tried(analyse, CARRIED, changes)
    if why is None:
        assert trial.level is Level.SAFE, trial.reason
    else:
        assert trial.level is None and why in trial.reason


def test_a_patch_that_trains_right_and_keeps_every_graph_is_not_safe(analyse):
    source = CARRIED.replace("h = torch.zeros(3, 4)\n", "h = torch.zeros(3, 4)\nseen = []\n")
    trial = tried(analyse, source, [LEAKING])
    assert trial.level is None
    assert re.search("grows|held", trial.reason)


def tried(analyse, source, changes):
    new = source
    for old, replacement in changes:
        assert new.count(old) == 1
        new = new.replace(old, replacement)
    patch = unified_diff({"train.py": source.encode()}, {"train.py": new.encode()})
    [trial] = analyse(source, command="verify", patch=patch).trials
    return trial
