"""numpy and tensors with a graph: who only looks at values gets them detached, who trains on them is told."""

from __future__ import annotations

import pytest

from autodetach.model import Cause, Level, Status
from autodetach.source.diff import read_patch

HEAD = """\
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
np.random.seed(0)
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
TRAIN = """\
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOOKING = {
    "a method": (
        "for _ in range(20):\n    out = net(torch.randn(4, 3))\n    print(out.numpy().mean())\n"
        "    loss = out.pow(2).mean()\n" + TRAIN,
        "out.numpy()",
        "out.detach().numpy()",
    ),
    "on the way to the processor": (
        "for _ in range(20):\n    out = net(torch.randn(4, 3))\n    print(out.cpu().numpy().mean())\n"
        "    loss = out.pow(2).mean()\n" + TRAIN,
        "out.cpu()",
        "out.detach().cpu()",
    ),
    "a function of numpy's": (
        "for _ in range(20):\n    out = net(torch.randn(4, 3))\n    print(np.round(out, 2)[0])\n"
        "    loss = out.pow(2).mean()\n" + TRAIN,
        "np.round(out, 2)",
        "np.round(out.detach(), 2)",
    ),
    "an action is drawn, which has no derivative": (
        "for _ in range(20):\n    p = net(torch.randn(3)).softmax(0)\n"
        "    action = np.random.choice(2, p=p.numpy().astype(float) / p.numpy().astype(float).sum())\n"
        "    loss = -p[action].log()\n" + TRAIN,
        "p=p.numpy().astype(float) / p.numpy()",
        "p=p.detach().numpy().astype(float) / p.detach().numpy()",
    ),
    "a parameter": (
        "for _ in range(20):\n    loss = net(torch.randn(4, 3)).pow(2).mean()\n"
        + TRAIN
        + "    print(net.bias.numpy())\n",
        "net.bias.numpy()",
        "net.bias.detach().numpy()",
    ),
    "a helper that is called from two places": (
        "def plain(t):\n    return t.numpy()\n\nfor _ in range(20):\n    out = net(torch.randn(4, 3))\n"
        "    loss = out.pow(2).mean()\n" + TRAIN + "    print(plain(out).mean(), plain(loss))\n",
        "t.numpy()",
        "t.detach().numpy()",
    ),
    "a list, filled in a loop and read at the end": (
        "seen = []\nfor _ in range(20):\n    loss = net(torch.randn(4, 3)).pow(2).mean()\n"
        + TRAIN
        + "    seen.append(loss)\nprint(np.mean(seen))\n",
        "seen.append(loss)",
        "seen.append(loss.detach())",
    ),
    "a dictionary of lists on an object": (
        "class Log:\n    def __init__(self):\n        self.rows = {}\n    def add(self, **values):\n"
        "        for key, value in values.items():\n            self.rows.setdefault(key, []).append(value)\n"
        "log = Log()\nfor _ in range(20):\n    loss = net(torch.randn(4, 3)).pow(2).mean()\n"
        + TRAIN
        + "    log.add(loss=loss)\nprint({key: np.mean(row) for key, row in log.rows.items()})\n",
        "append(value)",
        "append(value.detach())",
    ),
    "the program's own except does the same elsewhere": (
        "for _ in range(20):\n    out = net(torch.randn(4, 3))\n    try:\n        a = out.numpy()\n"
        "    except RuntimeError:\n        a = out.detach().numpy()\n    loss = out.pow(2).mean()\n"
        + TRAIN
        + "print(np.abs(net(torch.ones(1, 3))).sum())\n",
        "np.abs(net(torch.ones(1, 3)))",
        "np.abs(net(torch.ones(1, 3)).detach())",
    ),
}


@pytest.mark.parametrize("name", LOOKING)
def test_who_only_looks_gets_a_detached_tensor(analyse, name):
    body, old, new = LOOKING[name]
    assert body.count(old) == 1
    outcome = analyse(HEAD + body)
    assert outcome.status is Status.REPAIRED, outcome.trials
    assert outcome.diagnosis.cause is Cause.VALUES_LEAVE_TORCH
    patched = read_patch(outcome.diff, {"train.py": (HEAD + body).encode()})["train.py"].decode()
    assert patched == HEAD + body.replace(old, new)


FEEDING = {
    "a term of the loss": "    loss = out.pow(2).mean() + torch.tensor(np.abs(out.numpy()).mean())\n",
    "a term that no scale changes": (
        "    a = out.numpy()\n    loss = out.pow(2).mean() * torch.tensor(float(np.corrcoef(a[:, 0], a[:, 1])[0, 1]))\n"
    ),
    "a target": "    loss = (out - torch.from_numpy(np.tanh(out.numpy()))).pow(2).mean()\n",
}


@pytest.mark.parametrize("name", FEEDING)
def test_what_feeds_the_training_is_not_called_safe(analyse, name):
    outcome = analyse(HEAD + "for _ in range(20):\n    out = net(torch.randn(4, 3))\n" + FEEDING[name] + TRAIN)
    assert outcome.status is Status.UNREPAIRED and outcome.diff == ""
    assert [t.level for t in outcome.trials if t.level] == [Level.UNSAFE]
    assert any("feed the training" in e.text for e in outcome.diagnosis.evidence)
    assert any("in torch" in way for way in outcome.diagnosis.ways_out)


def test_a_loss_that_is_numpys_alone_gets_no_patch(analyse):
    """Detached, it has no graph."""
    body = "    loss = torch.from_numpy(np.square(out.numpy())).mean()\n"
    outcome = analyse(HEAD + "for _ in range(20):\n    out = net(torch.randn(4, 3))\n" + body + TRAIN)
    assert outcome.status is Status.UNREPAIRED and outcome.diff == ""
    assert not any(t.level for t in outcome.trials)
    assert outcome.diagnosis.ways_out
