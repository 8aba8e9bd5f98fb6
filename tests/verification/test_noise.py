"""Programs that differ from themselves run to run: what may still be called safe, and what never."""

from __future__ import annotations

import pytest

from autodetach.model import Level
from autodetach.source.diff import unified_diff

# Nothing seeds what the system's random numbers make of the data or of the loss.
PROGRAM = """\
import os, struct, time
import torch

def noise():
    return struct.unpack("I", os.urandom(4))[0] / 2**32

a, b = torch.nn.GRUCell(3, 4), torch.nn.GRUCell(4, 4)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
h, g = torch.zeros(2, 4), torch.zeros(2, 4)
for _ in range(30):
    x = torch.ones(2, 3) * (1 + {amplitude} * noise())
    h = a(x, h)
    g = b(h, g)
    loss = (g - 1).pow(2).sum() + 0.1 * (h + 1).pow(2).sum() + {more}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BY_HAND = """\
import os, struct
import torch

def noise():
    return struct.unpack("I", os.urandom(4))[0] / 2**32

w, v = torch.full((2,), 0.3, requires_grad=True), torch.full((2,), 0.2, requires_grad=True)
h = torch.zeros(2)
for _ in range(30):
    x = 1 + {amplitude} * noise()
    h = torch.tanh(w * x + v * h)
    loss = (h - 0.7).pow(2).sum() + 0.1 * w.pow(2).sum() + {more}
    loss.backward()
    with torch.no_grad():
        for p in (w, v):
            p -= 0.1 * p.grad
            p.grad.zero_()
"""
RIGHT = {
    PROGRAM: [("a(x, h)", "a(x, h.detach())"), ("b(h, g)", "b(h, g.detach())")],
    BY_HAND: [("v * h)", "v * h.detach())")],
}
WRONG = {
    # the first cell learns from its own small term alone
    PROGRAM: [("a(x, h)", "a(x, h.detach())"), ("b(h, g)", "b(h.detach(), g.detach())")],
    # the input's weight learns from its decay alone
    BY_HAND: [("w * x + v * h)", "w.detach() * x + v * h.detach())")],
}
NOISY = {"far": 0.5, "much": 0.1, "some": 0.01}
QUIET = {"rounding": 1e-6, "a little": 3e-5}


@pytest.fixture
def judged(analyse):
    def call(program, changes, amplitude=0.0, more="0.0"):
        source = program.format(amplitude=amplitude, more=more)
        patched = source
        for old, new in changes:
            assert patched.count(old) == 1
            patched = patched.replace(old, new)
        patch = unified_diff({"train.py": source.encode()}, {"train.py": patched.encode()})
        outcome = analyse(source, command="verify", patch=patch)
        return outcome.trials[0], " ".join(outcome.notes)

    return call


PROGRAMS = pytest.mark.parametrize("program", [PROGRAM, BY_HAND], ids=["optimizer", "by hand"])


@PROGRAMS
def test_without_noise(judged, program):
    trial, notes = judged(program, RIGHT[program])
    assert trial.level is Level.SAFE and "differ" not in notes
    assert judged(program, WRONG[program])[0].level is None


@PROGRAMS
@pytest.mark.parametrize("name", NOISY)
def test_noise_that_hides_a_wrong_patch_lets_nothing_be_safe(judged, program, name):
    for changes in (RIGHT, WRONG):
        trial, notes = judged(program, changes[program], NOISY[name])
        assert trial.level is not Level.SAFE
        assert "two runs of the program differ by" in notes and "too much to tell" in notes


@PROGRAMS
@pytest.mark.parametrize("name", QUIET)
def test_noise_below_what_a_wrong_patch_does_is_allowed_for(judged, program, name):
    trial, notes = judged(program, RIGHT[program], QUIET[name])
    assert trial.level is Level.SAFE, trial.reason
    told = "two runs of the program differ by" in notes and "ten times that" in notes
    # noise of some units in the last place may round to the same losses by chance: then nothing had to be allowed for
    assert told or (name == "rounding" and "differ" not in notes)
    assert judged(program, WRONG[program], QUIET[name])[0].level is None


@PROGRAMS
def test_a_loss_that_is_noisy_by_itself_leaves_the_training_to_compare(judged, program):
    trial, notes = judged(program, RIGHT[program], more="5 * noise()")
    assert trial.level is Level.SAFE and "train the same" in notes
    assert judged(program, WRONG[program], more="5 * noise()")[0].level is None


def test_time_in_the_data(judged):
    timed = PROGRAM.replace("noise())\n", "(time.time() * 7 % 1))\n", 1)
    for changes in (RIGHT[PROGRAM], WRONG[PROGRAM]):
        assert judged(timed, changes, 0.5)[0].level is not Level.SAFE


def test_noise_that_comes_late_is_measured_when_patches_fall(judged):
    """Before the failure two runs are the same."""
    late = PROGRAM.replace("{amplitude} * noise()", "(_ > 5) * {amplitude} * noise()")
    for amplitude in (3e-4, 0.5):
        trial, notes = judged(late, RIGHT[PROGRAM], amplitude)
        assert trial.level is Level.SAFE and "ten times that" in notes, trial.reason
        assert judged(late, WRONG[PROGRAM], amplitude)[0].level is None


def test_a_small_learning_rate_hides_nothing(judged):
    """The parameters hardly move: the gradients tell."""
    slow = PROGRAM.replace("lr=0.1", "lr=1e-7")
    assert judged(slow, RIGHT[PROGRAM])[0].level is Level.SAFE
    trial, _ = judged(slow, WRONG[PROGRAM])
    assert trial.level is None and "gradients differ" in trial.reason
