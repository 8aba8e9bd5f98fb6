"""What ``torch.cuda`` and ``torch.accelerator`` tell a program whose tensors for CUDA lie on the CPU."""

import functools
import os
import sys
import time
import types
from collections import defaultdict

import torch

from .redirection import is_torchs

CAPABILITY = (8, 0)
"""The oldest that knows all precisions that the CPU knows."""


def _told(redirection, plain, answer, name):
    """``answer`` for the program, what is true for torch's own code."""

    def told(*args, **kwargs):
        if plain is not None and is_torchs(sys._getframe(1)):
            return plain(*args, **kwargs)
        redirection.note(name)
        return answer(*args, **kwargs) if callable(answer) else answer

    return functools.wraps(plain)(told) if isinstance(plain, types.FunctionType) else told


def _total_memory():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _answers(redirection):
    """Name in ``torch.cuda`` -> what the program gets: a value, or a function that makes it."""
    nothing = dict.fromkeys(
        """init synchronize empty_cache ipc_collect manual_seed manual_seed_all seed seed_all set_rng_state
        set_rng_state_all reset_peak_memory_stats reset_max_memory_allocated reset_max_memory_cached
        reset_accumulated_memory_stats set_per_process_memory_fraction set_stream set_sync_debug_mode
        """.split(),  # noqa: SIM905
        lambda *a, **k: None,
    )
    zero = dict.fromkeys(
        """memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_cached max_memory_cached
        get_sync_debug_mode utilization
        """.split(),  # noqa: SIM905
        lambda *a, **k: 0,
    )

    def set_device(device):
        number = redirection.number_of(device)
        redirection.current = redirection.current if number is None else number

    return {
        **nothing,
        **zero,
        "is_available": True,
        "is_initialized": True,
        "is_bf16_supported": lambda *a, **k: True,
        "is_current_stream_capturing": False,
        "can_device_access_peer": lambda *a, **k: False,
        "device_count": 1,
        "current_device": lambda: redirection.current,
        "set_device": set_device,
        "get_device_name": lambda *a, **k: "CPU",
        "get_device_capability": lambda *a, **k: CAPABILITY,
        "get_device_properties": lambda *a, **k: types.SimpleNamespace(
            name="CPU", major=CAPABILITY[0], minor=CAPABILITY[1], total_memory=_total_memory(),
            multi_processor_count=os.cpu_count() or 1,
        ),
        "get_arch_list": list,
        "mem_get_info": lambda *a, **k: (_total_memory(), _total_memory()),
        "memory_stats": lambda *a, **k: defaultdict(int),
        "memory_summary": lambda *a, **k: "",
        "memory_snapshot": lambda *a, **k: [],
        "initial_seed": lambda: torch.initial_seed(),
        "get_rng_state": lambda *a, **k: torch.get_rng_state(),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "current_stream": lambda *a, **k: Stream(),
        "default_stream": lambda *a, **k: Stream(),
        "stream": lambda stream: _Nothing(),
    }  # fmt: skip


def patch_cuda(redirection):
    for name, answer in _answers(redirection).items():
        setattr(torch.cuda, name, _told(redirection, getattr(torch.cuda, name, None), answer, f"torch.cuda.{name}"))
    for name in ("start", "stop"):
        setattr(torch.cuda.profiler, name, lambda: None)
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        plain = getattr(torch.cuda.nvtx, name, None)
        setattr(torch.cuda.nvtx, name, _told(redirection, plain, lambda *a, **k: None, f"torch.cuda.nvtx.{name}"))
    torch.cuda.nvtx.range = lambda *a, **k: _Nothing()
    torch.cuda.Stream = torch.cuda.ExternalStream = Stream
    torch.cuda.streams.Stream = Stream
    torch.cuda.Event = torch.cuda.streams.Event = Event
    torch.Tensor.record_stream = lambda tensor, stream: None

    class device(_Device):  # the name that torch gives it
        pass

    device.redirection = redirection
    torch.cuda.device = device
    torch.cuda.device_of = lambda tensor: device(redirection.home(tensor))


class _Nothing:
    """A context in which everything is as outside."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class _Device:
    """``torch.cuda.device``: the current device for a while."""

    redirection = None

    def __init__(self, device):
        self.idx = self.redirection.number_of(device)
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = self.redirection.current
        if self.idx is not None:
            self.redirection.current = self.idx

    def __exit__(self, *_):
        self.redirection.current = self.prev_idx
        return False


class Stream(_Nothing):
    """All work is done in the order of its calls."""

    cuda_stream = stream_id = priority = 0

    def __init__(self, device=None, priority=0, **_):
        self.device = torch.device("cuda", 0)

    def query(self):
        return True

    def record_event(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    def synchronize(self):
        return None

    def wait_event(self, event):
        return None

    def wait_stream(self, stream):
        return None

    def __eq__(self, other):
        return isinstance(other, Stream)

    def __hash__(self):
        return 0


class Event:
    """A moment; all work before it is done."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, **_):
        self._at = None

    def record(self, stream=None):
        self._at = time.perf_counter()

    def elapsed_time(self, end_event):
        """Milliseconds."""
        return (end_event._at - self._at) * 1000

    def query(self):
        return True

    def synchronize(self):
        return None

    def wait(self, stream=None):
        return None


def patch_accelerator(redirection):
    module = getattr(torch, "accelerator", None)
    answers = {
        "is_available": True,
        "device_count": 1,
        "current_accelerator": lambda *a, **k: torch.device("cuda"),
        "current_device_index": lambda: redirection.current,
        "current_device_idx": lambda: redirection.current,
        "synchronize": lambda *a, **k: None,
        "empty_cache": lambda: None,
    }
    for name, answer in answers.items() if module is not None else ():
        plain = getattr(module, name, None)
        if plain is not None:
            setattr(module, name, _told(redirection, plain, answer, f"torch.accelerator.{name}"))


PATCHES = (patch_cuda, patch_accelerator)
