"""A program without a fault that does a little of everything; it prints what a run could change."""

import atexit
import copy
import gc
import hashlib
import io
import multiprocessing
import random
import sys
import threading
import weakref

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


def shown(value):
    return digest(value) if value.dim() else float(value.detach()).hex()


def digest(*tensors):
    data = b"".join(t.detach().contiguous().to(torch.float64).numpy().tobytes() for t in tensors)
    return hashlib.sha1(data).hexdigest()[:12]


def live_nodes():
    """Autograd nodes alive below any tensor that the garbage collector knows."""
    gc.collect()
    seen, todo = set(), [o.grad_fn for o in gc.get_objects() if type(o) is torch.Tensor and o.grad_fn is not None]
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += [n for n, _ in node.next_functions if n is not None]
    return len(seen)


class Square(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * scale

    @staticmethod
    def backward(ctx, g):
        Square.calls += 1
        (x,) = ctx.saved_tensors
        return 2 * x * g * ctx.scale, None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.drop = nn.Dropout(0.3)

    def forward(self, x, how=""):
        x = self.drop(torch.tanh(self.a(x)))
        if how:
            x = checkpoint(self.middle, x, use_reentrant=how == "reentrant")
        return self.c(Square.apply(x, 0.5))

    def middle(self, x):
        return self.drop(F.relu(self.b(x)))


def optimizers():
    for make in (
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
        lambda p: torch.optim.AdamW(p, 0.01),
        lambda p: torch.optim.RMSprop(p, 0.01),
    ):
        for how in ("", "reentrant", "plain"):
            torch.manual_seed(3)
            net = Net()
            optimizer = make(net.parameters())
            for _ in range(3):
                optimizer.zero_grad()
                loss = F.cross_entropy(net(torch.randn(5, 6), how), torch.randint(3, (5,)))
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
            print("optimizer", type(optimizer).__name__, how, shown(loss), digest(*net.parameters()))
    print("function", Square.calls)


def closures():
    torch.manual_seed(5)
    x, y = torch.randn(20, 4), torch.randn(20, 1)
    net = nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=5)
    calls = []

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        calls.append(shown(loss))
        return loss

    for _ in range(2):
        optimizer.step(closure)
    print("lbfgs", calls, digest(*net.parameters()))


def by_hand():
    torch.manual_seed(6)
    w = torch.randn(4, requires_grad=True)
    state = torch.zeros(4)
    for _ in range(4):
        state = torch.tanh(state.detach() * w + 1)
        state.sum().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
    print("by hand", shown(w))
    (g,) = torch.autograd.grad((w**3).sum(), w, create_graph=True)
    (g * g).sum().backward()
    print("double backward", shown(w.grad), g.grad_fn is not None)


def two_networks():
    torch.manual_seed(7)
    generator, critic = nn.Linear(3, 4), nn.Linear(4, 1)
    og, oc = torch.optim.Adam(generator.parameters(), 0.01), torch.optim.Adam(critic.parameters(), 0.01)
    for _ in range(3):
        fake = generator(torch.randn(5, 3))
        oc.zero_grad()
        (critic(fake.detach()).mean() - critic(torch.randn(5, 4)).mean()).backward()
        oc.step()
        og.zero_grad()
        (-critic(fake).mean()).backward()
        og.step()
    print("gan", digest(*generator.parameters(), *critic.parameters()))


def hooks():
    torch.manual_seed(8)
    net, seen = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1)), []
    net[0].register_forward_hook(lambda m, i, o: seen.append("forward"))
    net[0].register_full_backward_hook(lambda m, i, o: seen.append(digest(*i, *o)))
    out = net(torch.randn(4, 3, requires_grad=True))
    out.register_hook(lambda g: seen.append(digest(g)) or 2 * g)
    net[2].weight.register_post_accumulate_grad_hook(lambda p: seen.append(shown(p.grad.sum())))
    out.sum().backward()
    print("hooks", seen)
    packed = []

    def pack(t):
        packed.append(tuple(t.shape))
        return t.numpy(force=True).copy()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda a: packed.append("un") or torch.from_numpy(a)):
        loss = (net(torch.randn(4, 3, requires_grad=True)) ** 2).sum()
    loss.backward()
    with torch.autograd.graph.save_on_cpu():
        net(torch.randn(4, 3, requires_grad=True)).sum().backward()
    print("saved tensors", packed, digest(*(p.grad for p in net.parameters())))


def transforms():
    torch.manual_seed(9)
    w, x = torch.randn(3), torch.randn(5, 3)
    each = torch.func.vmap(torch.func.grad(lambda w, x: torch.sin(w @ x)), in_dims=(None, 0))(w, x)
    hessian = torch.func.hessian(lambda w: (w**3).sum())(w)
    print("functional", digest(each), digest(hessian))
    net = nn.Linear(3, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = net(x)
    out.float().sum().backward()
    print("autocast", out.dtype, digest(out.float()), digest(net.weight.grad))
    with torch.inference_mode():
        print("inference", net(x).requires_grad)
    with torch.no_grad():
        print("no grad", net(x).requires_grad, torch.is_grad_enabled())
    twin = copy.deepcopy(net)
    buffer = io.BytesIO()
    torch.save(net.state_dict(), buffer)
    buffer.seek(0)
    twin.load_state_dict(torch.load(buffer))
    print("copies", digest(*twin.parameters()), repr(net), repr(out.detach()[0, 0].float()))
    print("anomaly", end=" ")
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        net(x).sum().backward()
    print(digest(net.weight.grad), np.asarray(x).sum() == x.numpy().sum(), [t.shape for t in x.split(2)])


class Mine(torch.Tensor):
    """A tensor subclass that counts."""

    counted = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Mine.counted += 1
        return super().__torch_function__(func, types, args, kwargs or {})


def subclasses():
    torch.manual_seed(10)
    x = torch.randn(3).as_subclass(Mine)
    w = torch.ones(3, requires_grad=True)
    y = (x * w).sin().sum()
    y.backward()
    print("subclass", type(y).__name__, Mine.counted, digest(w.grad))

    names = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(getattr(func, "__name__", "?"))
            return func(*args, **(kwargs or {}))

    with Watch():
        (w * 2).sum()
    print("mode", names)


def memory():
    torch.manual_seed(11)
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(net.parameters())
    before, dead = live_nodes(), []
    for _ in range(3):
        x = torch.randn(2, 4)
        hidden = net[:2](x)
        loss = net[2](hidden).sum()
        dead += [weakref.ref(t) for t in (x, hidden, loss)]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del x, hidden, loss
        print("alive", [r() is not None for r in dead], live_nodes() - before)
    gc.collect()
    gone = weakref.ref(optimizer), weakref.ref(net)
    del optimizer, net
    gc.collect()
    print("gone", [r() is None for r in gone])
    h = torch.zeros(3)
    w = torch.ones(3, requires_grad=True)
    for _ in range(4):
        h = h * w + 1
    print("kept by the program", live_nodes() - before)
    h.sum().backward()
    del h
    print("let go", live_nodes() - before)


class Numbers(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return torch.tensor(float(i)) + torch.rand(()), torch.utils.data.get_worker_info().id


def loaders():
    torch.manual_seed(12)
    loader = DataLoader(Numbers(), batch_size=4, shuffle=True, num_workers=2, persistent_workers=True)
    for _ in range(2):
        print("loader", [(digest(x), w.tolist()) for x, w in loader])


def train_in(queue, seed):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(4, 3)).pow(2).mean().backward()
        optimizer.step()
    queue.put((seed, digest(*net.parameters())))


def workers():
    queue = multiprocessing.Queue()
    children = [multiprocessing.Process(target=train_in, args=(queue, seed)) for seed in (1, 2)]
    for child in children:
        child.start()
    print("children", sorted(queue.get() for _ in children))
    for child in children:
        child.join()
    print([child.exitcode for child in children])


def threads():
    class Box:
        def __init__(self):
            self.got = []

        def put(self, item):
            self.got.append(item)

    box = Box()
    for seed in (1, 2):
        thread = threading.Thread(target=train_in, args=(box, seed))
        thread.start()
        thread.join()
    print("threads", box.got, threading.active_count())


def patched_backward():
    plain, calls = torch.Tensor.backward, []

    def backward(self, *args, **kwargs):
        calls.append(shown(self))
        return plain(self, *args, **kwargs)

    torch.Tensor.backward = backward
    try:
        w = torch.ones(2, requires_grad=True)
        (w * 3).sum().backward()
        torch.autograd.backward((w * 2).sum())
    finally:
        torch.Tensor.backward = plain
    print("patched backward", calls, w.grad.tolist())


def traced():
    lines = []

    def trace(frame, event, arg):
        if frame.f_code.co_filename == __file__ and event == "call":
            lines.append(frame.f_code.co_name)
            return trace
        return None

    def inner(w):
        return (w * 2).sum()

    sys.settrace(trace)
    inner(torch.ones(2, requires_grad=True)).backward()
    sys.settrace(None)
    print("settrace", lines)


def main():
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    for part in (optimizers, closures, by_hand, two_networks, hooks, transforms, subclasses, memory, loaders, workers,
                 threads, patched_backward, traced):  # fmt: skip
        part()
        print("random", random.random(), np.random.rand(), shown(torch.rand(())))
    print("state", hashlib.sha1(torch.get_rng_state().numpy().tobytes()).hexdigest()[:12])


if __name__ == "__main__":
    atexit.register(print, "the end")
    main()
