"""Backward on several values: both reductions are shown with their meaning, neither is called safe nor taken."""

from __future__ import annotations

from autodetach.model import Cause, Level, Status

PROGRAM = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
f = nn.MSELoss(reduction="none")
for i in range(20):
    loss = f(net(torch.randn(4, 3)), torch.randn(4, 1))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_mean_and_sum_are_shown_and_not_taken(analyse):
    for settings in ({}, {"unsafe": True}):
        outcome = analyse(PROGRAM, **settings)
        assert outcome.status is Status.UNREPAIRED and outcome.diff == "" and outcome.chosen is None
        assert outcome.diagnosis.cause is Cause.NOT_A_NUMBER
        assert any("4 x 1" in e.text for e in outcome.diagnosis.evidence)
        shown = {t.diff.splitlines()[-2]: t.level for t in outcome.trials}
        lines = [line for t in outcome.trials for line in t.diff.splitlines() if line.startswith("+    ")]
        assert lines == ["+    loss.mean().backward()", "+    loss.sum().backward()"], shown
        assert {t.level for t in outcome.trials} == {Level.DISPLAY_ONLY}
        assert any(".mean()" in way for way in outcome.diagnosis.ways_out)


def test_on_the_command_line(command, tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    said = command(tmp_path, "fix", "train.py")
    assert said.status == 1 and said.stdout == ""
    assert said.stderr.count("[display-only]") == 2 and "loss.sum().backward()" in said.stderr
