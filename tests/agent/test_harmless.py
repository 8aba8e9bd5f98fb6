"""Under the agent a program computes the same numbers, keeps the same things alive and says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
MODES = {
    "observe": {"mode": "observe"},
    "reference": {"mode": "reference"},
    "with probes": {"mode": "reference", "probes": True},
    "shadow": {"mode": "shadow"},
}


SUBCLASS = "subclass Mine"


def lines(ran, mode):
    """What was printed; how often a subclass of tensor is asked, only where the agent asks it nothing itself."""
    return [line[: len(SUBCLASS) if mode != "observe" else None] if line.startswith(SUBCLASS) else line
            for line in ran.stdout.splitlines()]  # fmt: skip


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """What plain python prints: taken once, for importing torch takes seconds."""
    import subprocess
    import sys

    folder = tmp_path_factory.mktemp("plain")
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "healthy.py")], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("mode", MODES)
def test_a_healthy_program_runs_the_same(run, plain, mode):
    under = run({"main.py": (PROGRAMS / "healthy.py").read_bytes()}, **MODES[mode])
    assert lines(under, mode) == lines(plain, mode)
    assert (under.status, under.stderr) == (0, plain.stderr)
    assert not under.recording.agent_errors
    assert under.recording.failure is None
    assert under.recording.how == "exit"


def test_a_subclass_of_tensor_does_not_notice_the_reference_run(run):
    source = """\
import torch
class Mine(torch.Tensor):
    counted = 0
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Mine.counted += 1
        return super().__torch_function__(func, types, args, kwargs or {})
w = torch.ones(3, requires_grad=True)
for _ in range(2):
    y = (torch.ones(3).as_subclass(Mine) * w).sin().sum()
    y.backward()
print(Mine.counted)
"""
    assert run(source, mode="reference").stdout == run(source).stdout


def test_loaders_and_torch_processes_that_are_spawned(run):
    """Children are forked whatever the program asks for; it notices nothing."""
    source = """\
import torch
import torch.multiprocessing as mp

class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, i):
        return torch.tensor(float(i))

def work(rank, queue):
    queue.put((rank, torch.ones(2).mul(rank).tolist()))

if __name__ == "__main__":
    mp.set_start_method("spawn")
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2, multiprocessing_context="spawn")
    print([b.tolist() for b in loader])
    queue = mp.SimpleQueue()
    mp.spawn(work, (queue,), nprocs=2)
    print(sorted(queue.get() for _ in range(2)))
"""
    said = run(source)
    assert said.stdout == "[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]\n[(0, [0.0, 0.0]), (1, [1.0, 1.0])]\n"
    assert (said.status, said.stderr) == (0, "")


def test_the_users_traceback_of_a_torch_error(run):
    """Neither the agent's frames nor torch's own dispatch to it stand in it."""
    source = """\
import torch

def train(w):
    loss = w.exp().sum()
    loss.backward()
    loss.backward()

def wrong():
    return torch.ones(2) @ torch.ones(3)

w = torch.ones(2, requires_grad=True)
try:
    wrong()
except RuntimeError as error:
    train(w)
"""
    said = run(source)
    names = [line.split(", ")[-1] for line in said.stderr.splitlines() if line.startswith("  File")]
    assert names == [
        "in <module>", "in wrong", "in <module>", "in train", "in backward", "in backward", "in _engine_run_backward",
    ]  # fmt: skip
    assert "_autodetach_agent" not in said.stderr and "overrides.py" not in said.stderr
    assert said.recording.traceback == said.stderr
