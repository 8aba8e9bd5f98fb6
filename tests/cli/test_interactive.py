"""-i from the command line: refused at once without a terminal; with one, what is chosen is what is printed."""

from __future__ import annotations

import io
import sys

import pytest

UNDECIDED = """\
import numpy as np
import torch

torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(20):
    out = net(torch.randn(4, 3))
    loss = out.pow(2).mean() + torch.tensor(np.abs(out.numpy()).mean())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_it_is_refused_before_anything_runs(command, tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("open('ran', 'w')\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n"))
    said = command(tmp_path, "fix", "-i", "train.py")
    assert (said.status, said.stdout) == (2, "")
    assert said.stderr == "autodetach: error[usage]: -i asks a question: it needs a terminal\n"


@pytest.mark.parametrize(("answer", "status"), [("1\n", 0), ("0\n", 1), ("", 1)])
def test_what_is_chosen_is_printed(command, tmp_path, monkeypatch, answer, status):
    (tmp_path / "train.py").write_text(UNDECIDED)
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    said = command(tmp_path, "fix", "-i", "train.py")
    assert said.status == status, said.stderr
    assert "1. [unsafe] detach out in line 9" in said.stderr
    assert said.stderr.count("Which one? 1 to 1, 0 for none: ") == 1
    assert ("+    loss = out.pow(2).mean() + torch.tensor(np.abs(out.detach().numpy()).mean())\n" in said.stdout) is (
        status == 0
    )
    assert (tmp_path / "train.py").read_text() == UNDECIDED


def test_all_lists_every_candidate_with_its_level_and_reason(command, tmp_path):
    (tmp_path / "train.py").write_text(UNDECIDED)
    said = command(tmp_path, "fix", "--all", "train.py")
    assert said.status == 1 and said.stdout == ""
    assert said.stderr.index("[unsafe] detach out in line 9") < said.stderr.index("[rejected] detach net(")
    assert "another error comes: no-grad-fn" in said.stderr
    message = command(tmp_path, "fix", "--output-format", "github", "-q", "train.py").stdout
    assert "Not taken [unsafe]: detach out in line 9" in message.replace("%3A", ":")
