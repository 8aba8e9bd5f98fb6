"""Programs written for CUDA, where there is none: each word of theirs, and what stays as it is."""

from __future__ import annotations

import importlib.util
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

SERVE = Path(__file__).parents[2] / "autodetach" / "agent" / "serve.py"
NONE = not torch.cuda.is_available()

PROGRAMS = """
=== cuda()
x = torch.ones(2).cuda()
assert x.is_cuda and x.device == torch.device('cuda:0')
=== cuda(0)
assert torch.ones(2).cuda(0).get_device() == 0
=== cuda(device)
assert torch.ones(2).cuda(device='cuda:1').device.index == 1
=== cuda(non_blocking)
assert torch.ones(2).pin_memory().cuda(non_blocking=True).is_cuda
=== to(name)
assert torch.ones(2).to('cuda').is_cuda and torch.ones(2).to('cuda:1').get_device() == 1
=== to(torch.device)
assert torch.ones(2).to(torch.device('cuda')).device.type == 'cuda'
=== to(number)
assert torch.ones(2).to(0).is_cuda
=== to(device, dtype)
x = torch.ones(2).to('cuda', torch.float64)
assert x.is_cuda and x.dtype == torch.float64
=== to(keywords)
x = torch.ones(2).to(device='cuda', dtype=torch.int64)
assert x.is_cuda and x.dtype == torch.int64
=== to(another)
x = torch.ones(2).to(torch.ones(1, dtype=torch.float64).cuda())
assert x.is_cuda and x.dtype == torch.float64
=== to(dtype)
x = torch.ones(2).cuda().to(torch.float64)
assert x.is_cuda and x.dtype == torch.float64
=== cpu()
x = torch.ones(2).cuda()
assert not x.cpu().is_cuda and x.cpu().numpy().sum() == 2
=== to('cpu')
assert torch.ones(2).cuda().to('cpu').device.type == 'cpu'
=== on the CPU
x = torch.ones(2)
assert not x.is_cuda and x.device.type == 'cpu' and (x.cpu() is x) and x.is_cpu
=== a copy
x = torch.ones(2)
y = x.cuda()
y += 1
z = y.cpu()
z += 1
assert [x[0], y[0], z[0]] == [1, 2, 3]
=== no second copy
x = torch.ones(2).cuda()
assert x.cuda() is x and x.to('cuda') is x and (x.to('cuda:0') is x)
=== a move has a graph
x = torch.ones(2, requires_grad=True)
y = x.cuda()
assert x.is_leaf and (not y.is_leaf)
y.sum().backward()
assert x.grad.tolist() == [1, 1]
=== a leaf there
x = torch.ones(2, device='cuda', requires_grad=True)
assert x.is_leaf and x.cuda() is x
=== what is computed
x = torch.ones(2).cuda()
assert (x * 2)[0].is_cuda and torch.cat([x, x]).T.detach().is_cuda
=== likes
x = torch.ones(2).cuda()
assert torch.zeros_like(x).is_cuda and x.new_zeros(3).is_cuda
=== like, elsewhere
assert not torch.zeros_like(torch.ones(2).cuda(), device='cpu').is_cuda
=== gradients
x = torch.ones(2, device='cuda', requires_grad=True)
(x * x).sum().backward()
assert x.grad.is_cuda
=== autograd.grad
x = torch.ones(2, device='cuda', requires_grad=True)
assert torch.autograd.grad((x * x).sum(), x)[0].is_cuda
=== autograd.Function
class F(torch.autograd.Function):
    forward = staticmethod(lambda ctx, x: x * 2)
    backward = staticmethod(lambda ctx, g: g * 2)
assert F.apply(torch.ones(2).cuda()).is_cuda
=== type(name)
x = torch.ones(2).type('torch.cuda.DoubleTensor')
assert x.type() == 'torch.cuda.DoubleTensor'
=== type(class)
x = torch.ones(2).type(torch.cuda.LongTensor)
assert x.is_cuda and x.dtype == torch.int64
=== type(CPU's)
assert torch.ones(2).cuda().type(torch.FloatTensor).type() == 'torch.FloatTensor'
=== FloatTensor
x = torch.cuda.FloatTensor([1, 2])
assert x.is_cuda and isinstance(x, torch.cuda.FloatTensor)
assert not isinstance(torch.ones(1), torch.cuda.FloatTensor) and torch.cuda.FloatTensor(2, 3).shape == (2, 3)
=== pin_memory
x = torch.ones(2, pin_memory=True)
assert x.pin_memory().tolist() == [1, 1]
=== storages
assert torch.ones(2).untyped_storage().cuda().nbytes() == 8
=== device=name
assert torch.zeros(2, device='cuda').is_cuda and torch.arange(3, device='cuda:1').get_device() == 1
=== device=torch.device
d = torch.device('cuda')
assert torch.tensor([1.], device=d).is_cuda and torch.as_tensor([1], device=d).is_cuda
assert torch.randn(2, device=d).is_cuda and torch.randperm(3, device=d).is_cuda and torch.eye(2, device=d).is_cuda
assert torch.full((2,), 1.0, device=d).is_cuda and torch.linspace(0, 1, 3, device=d).is_cuda
=== device=number
assert torch.zeros(2, device=0).is_cuda
=== device of another
x = torch.zeros(2).cuda()
assert torch.ones(1, device=x.device).is_cuda
=== default device
torch.set_default_device('cuda')
assert torch.zeros(2).is_cuda and nn.Linear(2, 2).weight.is_cuda
torch.set_default_device('cpu')
assert not torch.zeros(2).is_cuda
=== device block
with torch.device('cuda'):
    x = torch.zeros(2)
assert x.is_cuda and (not torch.zeros(2).is_cuda)
=== default tensor type
torch.set_default_tensor_type('torch.cuda.DoubleTensor')
assert torch.zeros(2).is_cuda and torch.zeros(2).dtype == torch.float64
=== default tensor class
torch.set_default_tensor_type(torch.cuda.FloatTensor)
assert torch.zeros(2).is_cuda
=== generator
g = torch.Generator(device='cuda').manual_seed(1)
x = torch.rand(2, generator=g, device='cuda')
assert torch.equal(x, torch.rand(2, generator=g.manual_seed(1), device='cuda')) and x.is_cuda
assert isinstance(g, torch.Generator) and isinstance(torch.default_generator, torch.Generator)
=== module.cuda()
m = nn.Linear(2, 2).cuda()
assert m.weight.is_cuda and m(torch.ones(2).cuda()).is_cuda
=== module.to()
m = nn.LSTM(2, 2).to('cuda:1')
assert next(m.parameters()).get_device() == 1
=== module.to(number)
assert nn.Linear(2, 2).to(0).weight.is_cuda
=== module.to(device=number)
assert nn.Linear(2, 2).to(device=0).weight.is_cuda and nn.Linear(2, 2).to(device='cuda').weight.is_cuda
m = nn.Linear(2, 2).to(device=torch.device('cuda'), dtype=torch.float64)
assert m.weight.is_cuda and m.weight.dtype == torch.float64
=== backward of a half
m = nn.Linear(2, 2).cuda().half()
m(torch.ones(1, 2).cuda().half()).sum().backward()
assert m.weight.grad.dtype == torch.float16
=== checkpoint
from torch.utils.checkpoint import checkpoint
m = nn.Linear(2, 2).cuda()
x = torch.ones(1, 2, device='cuda', requires_grad=True)
for reentrant in (True, False):
    checkpoint(m, x, use_reentrant=reentrant).sum().backward()
with torch.autocast('cuda'):
    y = checkpoint(m, x, use_reentrant=False)
assert y.is_cuda and y.dtype == torch.float16
y.sum().backward()
assert m.weight.grad.tolist() == [[3, 3], [3, 3]]
=== the compiler
import torch._dynamo, torch._inductor
m = torch.compile(nn.Linear(2, 2).cuda(), backend='eager')
assert m(torch.ones(1, 2).cuda()).shape == (1, 2)
=== module there and back
m = nn.BatchNorm1d(2).cuda().cpu()
assert not m.weight.is_cuda and (not m.running_mean.is_cuda)
=== parameters stay
m = nn.Linear(2, 2)
w = m.weight
m.cuda()
assert m.weight is w and w.is_cuda and w.is_leaf
=== module(device=)
assert nn.Linear(2, 2, device='cuda').weight.is_cuda
=== to_empty
assert nn.Linear(2, 2, device='meta').to_empty(device='cuda').weight.is_cuda
=== deepcopy
import copy
assert copy.deepcopy(nn.Linear(2, 2).cuda()).weight.is_cuda
=== Parameter
assert nn.Parameter(torch.ones(2).cuda()).is_cuda
=== DataParallel
m = nn.DataParallel(nn.Linear(2, 2), device_ids=[0]).cuda()
assert m(torch.ones(3, 2).cuda()).is_cuda
assert set(m.state_dict()) == {'module.weight', 'module.bias'}
=== data_parallel
m = nn.Linear(2, 2).cuda()
x = torch.ones(3, 2).cuda()
assert nn.parallel.data_parallel(m, x, [0]).shape == (3, 2)
=== is_available
assert torch.cuda.is_available()
=== devices
assert torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
=== set_device
torch.cuda.set_device(1)
assert torch.cuda.current_device() == 1 and torch.ones(1).cuda().get_device() == 1
=== device context
with torch.cuda.device(1):
    x = torch.ones(1).cuda()
assert x.get_device() == 1 and torch.cuda.current_device() == 0
=== properties
assert torch.cuda.get_device_name(0) and torch.cuda.get_device_capability()[0] >= 7
assert torch.cuda.get_device_properties('cuda').total_memory > 0
=== synchronize
torch.cuda.synchronize()
torch.cuda.empty_cache()
torch.cuda.ipc_collect()
torch.cuda.init()
=== memory
assert torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated('cuda') == 0
torch.cuda.reset_peak_memory_stats()
free, total = torch.cuda.mem_get_info()
assert 0 < free <= total
assert torch.cuda.memory_reserved(0) == torch.cuda.memory_stats()['x'] == 0 and torch.cuda.memory_summary() == ''
=== seeds
before = torch.get_rng_state()
torch.cuda.manual_seed(1)
torch.cuda.manual_seed_all(2)
torch.cuda.set_rng_state(torch.cuda.get_rng_state())
assert torch.equal(before, torch.get_rng_state())
=== streams
s = torch.cuda.Stream()
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    x = torch.ones(2).cuda()
x.record_stream(s)
s.synchronize()
assert s.query() and torch.cuda.default_stream() == s
=== events
a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
a.record()
b.record()
b.synchronize()
torch.cuda.current_stream().wait_event(b)
assert 0 <= a.elapsed_time(b) < 1000 and b.query()
=== nvtx
torch.cuda.nvtx.range_push('step')
torch.cuda.nvtx.range_pop()
with torch.cuda.nvtx.range('x'):
    pass
=== bfloat16
assert torch.cuda.is_bf16_supported()
=== accelerator
assert torch.accelerator.is_available() and torch.accelerator.current_accelerator().type == 'cuda'
=== cudnn
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = True
=== autocast
m = nn.Linear(2, 2).cuda()
with torch.autocast('cuda'):
    y = m(torch.ones(3, 2).cuda())
assert y.dtype == torch.float16
y.float().sum().backward()
assert m.weight.grad.dtype == torch.float32
=== autocast, bfloat16
with torch.autocast(device_type='cuda', dtype=torch.bfloat16):
    y = nn.Linear(2, 2).cuda()(torch.ones(3, 2).cuda())
assert y.dtype == torch.bfloat16
=== autocast, old
with torch.cuda.amp.autocast():
    y = nn.Linear(2, 2).cuda()(torch.ones(3, 2).cuda())
assert y.dtype == torch.float16
=== autocast, off
with torch.autocast('cuda', enabled=False):
    y = nn.Linear(2, 2).cuda()(torch.ones(3, 2).cuda())
assert y.dtype == torch.float32
=== GradScaler
m = nn.Linear(2, 2).cuda()
o = torch.optim.SGD(m.parameters(), 0.1)
s = torch.amp.GradScaler('cuda')
before = m.weight.clone()
s.scale(m(torch.ones(3, 2).cuda()).sum()).backward()
s.unscale_(o)
s.step(o)
s.update()
assert torch.allclose(m.weight, before - 0.3)
=== GradScaler, old
s = torch.cuda.amp.GradScaler()
assert s.is_enabled() and s.scale(torch.ones(1).cuda()).item() == 65536
=== half
m = nn.Linear(2, 2).cuda().half()
y = m(torch.ones(3, 2).cuda().half())
y.sum().backward()
assert y.dtype == m.weight.grad.dtype == torch.float16
=== half without a kernel, told otherwise
x = torch.ones(8).cuda().half()
assert torch.fft.rfft(x).abs()[0] == 8 and torch.linalg.inv(torch.eye(2).cuda().half()).dtype == torch.float16
=== half without a kernel, in place
x = torch.ones(2).cuda().half()
assert nn.functional.rrelu_(x, training=True) is x and x.tolist() == [1, 1]
=== half that does not fit
try:
    torch.ones(2, 2).cuda() @ torch.ones(2, 2).cuda().half()
except RuntimeError:
    pass
else:
    raise AssertionError
=== custom_fwd
class Double(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type='cuda')
    def forward(ctx, x):
        return x * 2
    @staticmethod
    @torch.amp.custom_bwd(device_type='cuda')
    def backward(ctx, g):
        return g * 2
x = torch.ones(2, device='cuda', requires_grad=True)
with torch.autocast('cuda'):
    Double.apply(x).sum().backward()
assert x.grad.tolist() == [2, 2]
=== a loop of PyTorch's own recipes
scaler = torch.amp.GradScaler('cuda', enabled=True)
net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2)).cuda()
net = net.to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, fused=True)
for _ in range(3):
    x = torch.rand(2, 1, 4, 4).to('cuda', memory_format=torch.channels_last, non_blocking=True)
    with torch.autocast(device_type='cuda', dtype=torch.float16):
        loss = nn.functional.cross_entropy(net(x), torch.tensor([0, 1]).cuda())
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
torch.cuda.profiler.start()
torch.cuda.profiler.stop()
assert loss.is_cuda and next(iter(optimizer.state.values()))['momentum_buffer'].shape == (2, 1, 3, 3)
=== a checkpoint from there
plain = torch.serialization.location_tag
torch.serialization.location_tag = lambda storage: 'cuda:0'
torch.save({'net': nn.Linear(2, 2).state_dict(), 'best': torch.ones(1)}, 'there.pt')
torch.serialization.location_tag = plain
found = torch.load('there.pt')
assert found['best'].is_cuda and found['net']['weight'].is_cuda
assert not torch.load('there.pt', map_location='cpu')['best'].is_cuda
net = nn.Linear(2, 2).cuda()
net.load_state_dict(found['net'])
assert net.weight.is_cuda and torch.equal(net.weight, found['net']['weight'])
=== half without a kernel
a = torch.eye(2).cuda().half() * 4
y = torch.linalg.cholesky(a)
assert y.dtype == torch.float16 and y.is_cuda and (y[0, 0] == 2)
=== load
torch.save({'w': torch.ones(2)}, 'w.pt')
assert torch.load('w.pt', map_location='cuda')['w'].is_cuda
assert torch.load('w.pt', map_location=torch.device('cuda'))['w'].is_cuda and (not torch.load('w.pt')['w'].is_cuda)
assert torch.load('w.pt', map_location={'cpu': 'cuda:1'})['w'].get_device() == 1
assert torch.load('w.pt', map_location=lambda s, place: s.cuda(1))['w'].get_device() == 1
=== DataLoader
from torch.utils.data import DataLoader, TensorDataset
data = DataLoader(TensorDataset(torch.arange(4.0)), 2, pin_memory=True)
assert data.pin_memory
assert [x.cuda().sum().item() for x, in data] == [1, 5]
"""
ROWS = {name: source for name, _, source in (part.partition("\n") for part in PROGRAMS.split("=== ")[1:])}


@pytest.mark.skipif(not NONE, reason="there is CUDA here")
@pytest.mark.parametrize("name", ROWS)
def test_a_word_of_cuda(run, name):
    said = run(f"import torch\nfrom torch import nn\n{ROWS[name]}", redirect=True)
    assert (said.status, said.stderr.replace("FutureWarning", "Warning").count("Error")) == (0, 0), said.stderr
    assert not said.named("agent-error")
    ours = {"on the CPU", "pin_memory", "cudnn"}
    assert bool(said.named("redirected")) == (name not in ours)


UNLIKE = frozenset({"devices", "memory", "seeds", "streams", "events"}) | {
    name for name in ROWS if name.startswith("half without")
}
"""Rows that are not so on a GPU, or not on each."""


@pytest.mark.cuda
@pytest.mark.parametrize("name", [name for name in ROWS if name not in UNLIKE])
def test_a_word_means_the_same_on_a_gpu(run, name):
    source = ROWS[name]
    if any(word in source for word in ("cuda:1", "cuda(1)", "device(1)")) and torch.cuda.device_count() < 2:
        pytest.skip("needs two")
    said = run(f"import torch\nfrom torch import nn\n{source}")
    assert said.status == 0, said.stderr


TRAINING = """
import sys
import torch
from torch import nn

torch.manual_seed(0)
net = nn.GRU(3, 4){module}
head = nn.Linear(4, 1){module}
optimizer = torch.optim.Adam([*net.parameters(), *head.parameters()])
state = torch.zeros(1, 2, 4{device})
for step in range(6):
    out, state = net(torch.randn(5, 2, 3){tensor}, state{detach})
    loss = (head(out) ** 2).mean() + head.weight{data}.norm()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""
WORDS = {
    "methods": {"module": ".cuda()", "tensor": ".cuda()", "device": ", device='cuda'"},
}
PLAIN = {"module": "", "tensor": "", "device": ""}
MODES = {
    "observe": {"mode": "observe"},
    "reference": {"mode": "reference", "probes": True},
    "shadow": {"mode": "shadow", "interventions": {}},
    "grad-on": {"mode": "grad-on", "interventions": {"grad_on": []}},
    "retain": {"mode": "observe", "interventions": {"retain": "*"}},
}


@pytest.mark.skipif(not NONE, reason="there is CUDA here")
@pytest.mark.parametrize("detach", ["", ".detach()"], ids=["failing", "right"])
@pytest.mark.parametrize("mode", MODES)
def test_in_every_mode_the_recording_is_that_of_the_program_for_the_cpu(run, mode, detach):
    rest = {"detach": detach, "data": ".data"}
    plain = run(TRAINING.format(**PLAIN, **rest), **MODES[mode])
    moved = run(TRAINING.format(**WORDS["methods"], **rest), redirect=True, **MODES[mode])
    assert moved.stdout == plain.stdout
    assert moved.status == plain.status
    assert moved.named("redirected") and not plain.named("redirected")
    one, other = plain.recording, moved.recording
    assert [(s.params, s.grads) for s in other.steps] == [(s.params, s.grads) for s in one.steps]
    assert [b.loss for b in other.backwards] == [b.loss for b in one.backwards]
    assert (other.failure is None) == (one.failure is None)
    assert len(other.pairs) == len(one.pairs)
    assert other.devices == {"cpu"}
    assert not other.agent_errors


@pytest.mark.cuda
@pytest.mark.parametrize("mode", MODES)
def test_on_a_gpu_the_recording_is_that_of_the_cpu_within_rounding(run, mode):
    rest = {"detach": ".detach()", "data": ".data"}
    plain = run(TRAINING.format(**PLAIN, **rest), **MODES[mode]).recording
    moved = run(TRAINING.format(**WORDS["methods"], **rest), **MODES[mode]).recording
    assert moved.devices == {"cuda"} and moved.device_names
    assert [len(s.params) for s in moved.steps] == [len(s.params) for s in plain.steps]
    for one, other in zip(plain.backwards, moved.backwards, strict=True):
        assert one.loss == pytest.approx(other.loss, rel=1e-2)  # TF32


@pytest.mark.cuda
def test_on_a_gpu_a_checkpoint_within_a_backward_is_a_part_of_it(run):
    said = run(
        "import torch\nfrom torch.utils.checkpoint import checkpoint\nnet = torch.nn.Linear(2, 2).cuda()\n"
        "x = torch.ones(1, 2, device='cuda', requires_grad=True)\n"
        "checkpoint(net, x, use_reentrant=True).sum().backward()\n"
    )
    assert said.status == 0, said.stderr
    assert len(said.recording.backwards) == 1


@pytest.mark.skipif(not NONE, reason="there is CUDA here")
def test_threads_are_redirected_too(run):
    said = run(
        "import threading, torch\nfound = []\n"
        "t = threading.Thread(target=lambda: found.append(torch.ones(2).cuda().is_cuda))\n"
        "t.start(); t.join(); assert found == [True]\n",
        redirect=True,
    )
    assert said.status == 0, said.stderr


@pytest.mark.skipif(not NONE, reason="there is CUDA here")
def test_a_child_that_trains_is_redirected_and_known_to_be(run):
    source = """
    import multiprocessing, torch
    x = torch.ones(2).cuda()

    def work():
        w = torch.ones(2, device="cuda", requires_grad=True)
        (w * x).sum().backward()
        assert w.grad.is_cuda

    if __name__ == "__main__":
        child = multiprocessing.Process(target=work, name="worker")
        child.start()
        child.join()
        assert child.exitcode == 0
    """
    said = run(source, redirect=True)
    assert said.status == 0, said.stderr
    assert said.recording.process == "worker" and said.recording.redirected


@pytest.mark.skipif(not NONE, reason="there is CUDA here")
def test_errors_are_the_programs_own(run):
    source = "import torch\nx = torch.ones(2).cuda()\nx.to('cuda') @ torch.ones(3, device='cuda')\n"
    said = run(source, redirect=True)
    assert said.status == 1
    assert said.stderr.count("File ") == 1 and "main.py" in said.stderr
    assert "size" in said.stderr.splitlines()[-1]


@pytest.mark.skipif(not NONE, reason="there is CUDA here")
def test_a_device_that_makes_no_sense_fails_as_ever(run):
    said = run("import torch\ntorch.ones(2).to('cuda:x')\n", redirect=True)
    assert said.status == 1 and "Invalid device string" in said.stderr


def test_nothing_is_kept_alive(run):
    source = (
        "import torch, weakref, gc\nx = torch.ones(2).cuda(); y = x * 2\nboth = [weakref.ref(x), weakref.ref(y)]\n"
        "del x, y\ngc.collect()\nassert [r() for r in both] == [None, None]\n"
    )
    assert run(source, redirect=True).status == 0


@pytest.mark.parametrize(
    "asking",
    [
        "torch.cuda.is_available()",
        "torch.cuda.device_count()",
        pytest.param("torch.ones(2).cuda()", marks=pytest.mark.skipif(not NONE, reason="there is CUDA here")),
        pytest.param("torch.ones(2, device='cuda')", marks=pytest.mark.skipif(not NONE, reason="there is CUDA here")),
    ],
)
def test_a_program_that_asks_is_heard_and_left_alone(run, asking):
    said = run(f"import torch\nprint({asking})\n", watch=True)
    assert said.named("asked")
    assert not said.named("redirected")
    assert "cuda:0" not in said.stdout
    assert not run("import torch\ntorch.manual_seed(1)\nprint(torch.ones(2).device)\n", watch=True).named("asked")


@pytest.mark.parametrize(
    ("wanted", "visible", "seen"),
    [
        ("cpu", "0,1", ""),
        ("cuda:1", None, "1"),
        ("cuda:1", "4,7", "7"),
        ("auto", "4,7", "4,7"),
        ("cuda", "4", "4"),
    ],
)
def test_which_devices_the_program_sees(monkeypatch, wanted, visible, seen):
    from autodetach.agent import devices

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    devices.choose(wanted)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == seen


def _torch(names, built="12.8"):
    """As much of torch as is asked for its devices; ``names`` may be a function that makes the count fail."""
    cuda = SimpleNamespace(
        device_count=names if callable(names) else lambda: len(names), get_device_name=lambda i: names[i]
    )
    return SimpleNamespace(version=SimpleNamespace(cuda=built, hip=None), cuda=cuda)


def _crashes():
    os.kill(os.getpid(), signal.SIGKILL)


def _raises():
    raise RuntimeError("the driver is too old")


@pytest.mark.parametrize(
    ("torch_like", "found"),
    [
        (_torch(["NVIDIA H200", "é"]), ["NVIDIA H200", "é"]),
        (_torch([]), []),
        (_torch([], built=None), None),
        (_torch(_crashes), []),
        (_torch(_raises), []),
        (_torch(lambda: time.sleep(60)), []),
    ],
    ids=["two", "none", "built without", "crash", "error", "hangs"],
)
def test_devices_are_counted_in_a_child(monkeypatch, torch_like, found):
    spec = importlib.util.spec_from_file_location("serve_of_the_agent", SERVE)
    serve = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serve)
    monkeypatch.setattr(serve, "CUDA_SECONDS", 2)
    before = time.monotonic()
    assert serve.cuda_devices(torch_like) == found
    assert time.monotonic() - before < 30
