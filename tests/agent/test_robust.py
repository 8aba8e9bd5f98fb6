"""Programs that make a recorder stumble: what they do is recorded all the same, and they do it all the same."""

from __future__ import annotations

import pytest

from autodetach.model import FailureKind


def programs(text):
    """One a section, behind ``=== name``."""
    sections = text.strip().removeprefix("=== ").split("\n=== ")
    return {name: source + "\n" for name, _, source in (section.partition("\n") for section in sections)}


HEAD = """\
import threading, torch
w = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([w], 0.1)

def fails():
    loss = w.exp().sum()
    loss.backward()
    loss.backward()

"""


def test_a_program_that_catches_the_error_and_trains_on(run):
    source = HEAD + (
        "for _ in range(2):\n    try:\n        fails()\n    except RuntimeError as e:\n        print('skipped')\n"
        "    optimizer.step()\n"
    )
    said = run(source)
    assert (said.status, said.stdout) == (0, "skipped\nskipped\n")
    assert said.recording.failure is None and said.recording.how == "exit"
    assert any("caught the error itself" in note for note in said.recording.notes)


def test_a_program_that_catches_the_error_and_trains_on_by_hand(run):
    source = """\
import torch
w = torch.ones(3, requires_grad=True)
for _ in range(3):
    loss = w.exp().sum()
    try:
        loss.backward()
        loss.backward()
    except RuntimeError:
        w.grad = None
    (w * 2).sum().backward()
    w.data -= w.grad
"""
    said = run(source)
    assert said.status == 0 and said.recording.failure is None


def test_a_program_that_ends_because_of_an_error_that_it_prints(run):
    source = (
        HEAD + "try:\n    fails()\nexcept RuntimeError as e:\n    print('training failed')\n    raise SystemExit(1)\n"
    )
    said = run(source)
    assert said.status == 1
    assert said.recording.failure.kind is FailureKind.SECOND_BACKWARD


FALLBACKS = programs(
    """
=== numpy
def to_numpy(t):
    try:
        return t.numpy()
    except RuntimeError:
        return t.detach().numpy()
to_numpy(w * 2)
=== deepcopy
import copy
try:
    copy.deepcopy(w * 2)
except RuntimeError:
    pass
=== unused
try:
    torch.autograd.grad((w * 2).sum(), [w, torch.ones(1)])
except RuntimeError:
    pass
=== numpy in a loader's worker
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, i):
        try:
            return (w * 2).numpy()
        except RuntimeError:
            return (w * 2).detach().numpy()
print(len(list(torch.utils.data.DataLoader(Data(), num_workers=1))))
"""
)


@pytest.mark.parametrize("name", FALLBACKS)
def test_a_helper_that_tries_another_way_is_no_failure(run, name):
    said = run(HEAD + "(w * 3).sum().backward()\noptimizer.step()\n" + FALLBACKS[name])
    assert said.status == 0 and said.recording.failure is None


def test_the_error_and_what_it_holds_go_when_the_program_lets_go(run):
    source = """\
import gc, torch, weakref
w = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([w], 0.1)
class Batch:
    pass
def attempt():
    batch = Batch()
    loss = w.exp().sum()
    loss.backward()
    try:
        loss.backward()
    except RuntimeError as error:
        refs = weakref.ref(batch), weakref.ref(loss)
    return refs
refs = attempt()
gc.collect()
print([r() is None for r in refs])
"""
    assert run(source).stdout == "[True, True]\n"


def test_a_step_that_raises_does_not_blind_the_recorder(run):
    source = HEAD + (
        "bad = torch.optim.SGD([w], 0.1)\nbad.param_groups[0]['lr'] = 'none'\n(w * 1).sum().backward()\n"
        "try:\n    bad.step()\nexcept Exception as e:\n    print('step failed')\nfails()\n"
    )
    said = run(source)
    assert "step failed" in said.stdout
    assert said.recording.failure is not None
    assert len(said.recording.backwards) == 2


def test_a_failure_in_one_thread_while_another_is_inside_its_backward(run):
    source = (
        HEAD
        + """\
inside, go_on = threading.Event(), threading.Event()

class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        inside.set()
        go_on.wait(20)
        return g * 2

def slow():
    v = torch.ones(2, requires_grad=True)
    Slow.apply(v).sum().backward()

def failing():
    inside.wait(20)
    try:
        fails()
    finally:
        go_on.set()

threads = [threading.Thread(target=slow), threading.Thread(target=failing)]
for t in threads:
    t.start()
for t in threads:
    t.join()
"""
    )
    said = run(source, kill_on_stop=True)
    assert said.recording.failure is not None
    assert said.recording.failure.chain[0].function == "fails"


def test_a_failure_in_a_thread_ends_the_run_though_the_main_thread_waits(run):
    source = HEAD + (
        "import queue\ndone = queue.Queue()\ndef work():\n    fails()\n    done.put(1)\n"
        "threading.Thread(target=work, daemon=True).start()\ndone.get()\n"
    )
    said = run(source, kill_on_stop=True)
    assert said.recording.failure.kind is FailureKind.SECOND_BACKWARD
    assert [f.function for f in said.recording.failure.chain] == ["fails", "work"]
    assert said.recording.how == "error" and "second time" in said.recording.traceback


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_failure_in_a_child_ends_the_run_though_the_parent_waits(run, method):
    source = HEAD.replace("import threading", "import multiprocessing, threading") + (
        "def work(q):\n    fails()\n    q.put(1)\n\nif __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context('{method}')\n    q = context.Queue()\n"
        "    context.Process(target=work, args=(q,)).start()\n    q.get()\n"
    )
    said = run(source, kill_on_stop=True)
    assert said.recording.failure.kind is FailureKind.SECOND_BACKWARD
    assert [f.function for f in said.recording.failure.chain][:2] == ["fails", "work"]


def test_a_failure_in_a_loader_worker_is_found(run):
    source = HEAD + (
        "class Data(torch.utils.data.Dataset):\n    def __len__(self):\n        return 4\n"
        "    def __getitem__(self, i):\n        fails()\n        return i\n\n"
        "for batch in torch.utils.data.DataLoader(Data(), num_workers=1):\n    print(batch)\n"
    )
    said = run(source, kill_on_stop=True)
    assert said.recording.failure.kind is FailureKind.SECOND_BACKWARD
    assert said.recording.failure.chain[1].function == "__getitem__"


def test_steps_of_a_child_are_a_recording_of_its_own(run):
    """Parent and child both train; what is read is one of the two, never a mixture."""
    source = (
        HEAD
        + """\
import os
pid = os.fork()
for _ in range(3 if pid else 2):
    (w * (2 if pid else 100)).sum().backward()
    optimizer.step()
if pid:
    os.waitpid(pid, 0)
"""
    )
    said = run(source)
    recording = said.recording
    assert [s.n for s in recording.steps] == [1, 2, 3]
    assert all(b.loss[0] < 10 for b in recording.backwards)


def test_work_of_threads_that_outlive_the_main_one_counts(run):
    source = (
        HEAD
        + """\
import time
def work():
    time.sleep(0.3)
    for _ in range(4):
        w.sum().backward()
        optimizer.step()
threading.Thread(target=work).start()
"""
    )
    recording = run(source).recording
    assert (recording.how, recording.progress, len(recording.steps)) == ("exit", 4, 4)


def test_what_exit_handlers_do_counts(run):
    said = run(HEAD + "import atexit\natexit.register(fails)\n")
    assert said.recording.failure is not None
    assert said.recording.failure.chain[0].function == "fails"


BROKEN = programs(
    """
=== a loss that cannot be read
class Odd(torch.Tensor):
    def detach(self):
        raise ValueError('no')
(w * 2).sum().as_subclass(Odd).backward()
=== sparse gradients
e = torch.nn.Embedding(5, 2, sparse=True)
opt = torch.optim.SparseAdam(e.parameters())
e(torch.tensor([1, 1])).sum().backward()
opt.step()
=== odd types
half, double = torch.ones(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.float64)
h = torch.nn.Parameter(half)
opt = torch.optim.SGD([h, torch.nn.Parameter(double)], 0.1)
(h * 2).sum().backward()
opt.step()
=== meta
m = torch.nn.Linear(2, 2, device='meta')
opt = torch.optim.SGD(m.parameters(), 0.1)
m(torch.ones(1, 2, device='meta')).sum().backward()
opt.step()
=== an optimizer of one's own
class Mine(torch.optim.Optimizer):
    def __init__(self, p):
        super().__init__(p, {})
    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g['params']:
                p -= 0.1
o = Mine([w])
w.sum().backward()
o.step()
=== closed descriptors
import os
os.closerange(3, 200)
w.sum().backward()
optimizer.step()
=== another folder
import os, tempfile
os.chdir(tempfile.mkdtemp())
w.sum().backward()
optimizer.step()
=== code that lies in no file
exec(compile('w.sum().backward()', '<string>', 'exec'))
eval('optimizer.step()')
=== little stack
import sys
sys.setrecursionlimit(120)
w.sum().backward()
optimizer.step()
"""
)


@pytest.mark.parametrize("name", BROKEN)
def test_odd_programs_run_on(run, name):
    said = run(HEAD + BROKEN[name] + "print('reached')\n")
    assert (said.status, said.stdout) == (0, "reached\n"), said.stderr


@pytest.mark.parametrize("mode", ["observe", "reference", "shadow"])
def test_the_recorders_own_failure_is_told_and_hurts_nobody(run, mode):
    source = (
        HEAD
        + """\
import sys
fingerprint = sys.modules["_autodetach_agent.trajectory"]
fingerprint.fingerprint = fingerprint.gradient_norm = fingerprint.loss_values = lambda *_: 1 / 0
for _ in range(2):
    w.exp().sum().backward()
    optimizer.step()
print(w.tolist()[0] < 1)
fails()
"""
    )
    said = run(source, mode=mode)
    assert said.stdout == "True\n"
    assert any("ZeroDivisionError" in e for e in said.recording.agent_errors)
    assert "ZeroDivisionError" not in said.stderr
    if mode != "reference":  # there the failure is cut away
        assert said.recording.failure is not None


DEATHS = programs(
    """
=== a thread
import queue
def work():
    None.detach()
threading.Thread(target=work, daemon=True).start()
queue.Queue().get()
=== a child
import multiprocessing
def work():
    None.detach()
multiprocessing.Process(target=work).start()
multiprocessing.Queue().get()
=== nobody waits
import multiprocessing, multiprocessing.connection, time
def work():
    None.detach()
child = multiprocessing.Process(target=work)
child.start()
print(multiprocessing.connection.wait([child.sentinel], 30) == [child.sentinel])
child.join()
thread = threading.Thread(target=work)
thread.start()
thread.join()
print(child.exitcode)
until = time.monotonic() + 4
while time.monotonic() < until:
    w.sum().backward()
    optimizer.step()
"""
)


def test_who_dies_of_another_error_ends_the_run_where_all_others_wait_and_nowhere_else(agent, launch):
    """All at the same time: each takes seconds."""
    names = {death: launch(HEAD + source, folder=death) for death, source in DEATHS.items()}
    ends = {death: agent.wait(name, kill_on_stop=True) for death, name in names.items()}
    for said in ends.values():
        assert "AttributeError: 'NoneType' object has no attribute 'detach'" in said.stderr
        assert said.recording.failure is None and "_autodetach_agent" not in said.stderr
    for death in ("a thread", "a child"):
        assert any(e["how"] == "error" and e["status"] == 1 for e in ends[death].named("end"))
    said = ends["nobody waits"]
    assert (said.status, said.stdout, said.recording.how) == (0, "True\n1\n", "exit")
