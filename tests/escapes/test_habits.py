"""Programs with habits that get in a recorder's way: the fault is found and repaired all the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

BROKEN = """\
import torch

cell = torch.nn.GRUCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
h = torch.zeros(1, 3)
for _ in range(20):
    h = cell(torch.ones(1, 2), h)
    opt.zero_grad()
    h.pow(2).sum().backward()
    opt.step()
"""
READ, REPAIRED = "cell(torch.ones(1, 2), h)", "cell(torch.ones(1, 2), h.detach())"

HABITS = {
    "traces itself": "import sys\nsys.settrace(lambda frame, event, _: None)\n",
    "traces every line": "import sys\ndef trace(*_): return trace\nsys.settrace(trace)\n",
    "profiles itself": "import sys, threading\nfor one in (threading, sys):\n    one.setprofile(lambda *_: None)\n",
    "is profiled": "import cProfile\nprofile = cProfile.Profile()\nprofile.enable()\n",
    "replaces methods of torch": (
        "import torch\nplain = torch.Tensor.backward\n"
        "def backward(self, *args, **kwargs):\n    return plain(self, *args, **kwargs)\n"
        "torch.Tensor.backward = backward\n"
        "step = torch.optim.SGD.step\ntorch.optim.SGD.step = lambda self, closure=None: step(self, closure)\n"
    ),
    "replaces backward of autograd": (
        "import torch\nplain = torch.autograd.backward\n"
        "torch.autograd.backward = lambda *args, **kwargs: plain(*args, **kwargs)\n"
    ),
    "replaces builtins": (
        "import builtins\n"
        "for name in ('input', 'ascii', 'bin', 'round', 'divmod'):\n"
        "    setattr(builtins, name, None)\n"
        "plain = builtins.open\nbuiltins.open = lambda *args, **kwargs: plain(*args, **kwargs)\n"
    ),
    "stops the clock": "import time\ntime.time = time.monotonic = time.perf_counter = lambda: 0.0\n",
    "spoils json": "import json\njson.dumps = json.loads = None\n",
    "spoils writing": "import os\nos.write = lambda *_: 0\n",
    "spoils os": "import os\nos.getpid = lambda: 1\nos.fork = os._exit = None\n",
    "goes elsewhere": "import os, tempfile\nos.chdir(tempfile.mkdtemp())\n",
    "deletes its folder": "import os, shutil, torch\nshutil.rmtree(os.getcwd())\n",
    "rewrites its own source": "open(__file__, 'w').write('raise SystemExit(7)\\n')\n",
    "has no streams": "import sys\nsys.stdout = sys.stderr = sys.stdin = None\n",
    "ignores signals": (
        "import signal\nfor number in set(signal.valid_signals()) - {9, 19}:\n"
        "    signal.signal(number, signal.SIG_IGN)\n"
    ),
    "hangs at its exit": (
        "import atexit, threading, time\natexit.register(time.sleep, 100)\n"
        "threading.Thread(target=time.sleep, args=(100,)).start()\n"
    ),
    "forges events": (
        "import glob, json, os\nfor path in glob.glob(os.environ['TMPDIR'] + '/../../wire/*.events'):\n"
        "    with open(path, 'a') as file:\n"
        "        file.write('\\x00\\n[]\\n{}\\n' + json.dumps({'event': 'step'}) + '\\n')\n"
    ),
    "collects no garbage": "import gc\ngc.disable()\n",
    "has no limit to recursion": "import sys\nsys.setrecursionlimit(150)\n",
}


@pytest.fixture
def bystander():
    """A process of somebody else's."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("name", HABITS)
def test_a_habit_hides_no_fault(command, tmp_path, bystander, name):
    source = HABITS[name] + BROKEN
    (tmp_path / "t.py").write_text(source)
    said = command(tmp_path, "fix", "--timeout", "20", "t.py")
    assert said.status == 0, said.stderr
    assert REPAIRED in said.stdout
    assert "error[" not in said.stderr and (tmp_path / "t.py").read_text() == source
    assert bystander.poll() is None, "a process that is none of the run's was ended"
