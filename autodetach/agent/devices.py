"""Programs that are written for CUDA, on a machine that has none: what they say of CUDA, and what it means here.

============================================  ======================================================================
the program                                   on the CPU
============================================  ======================================================================
``x.cuda()``, ``x.to("cuda:1")``, ``.to(0)``  a copy, as it would be there; ``x`` itself if it is there already
``device="cuda"`` in any call                 the CPU
``x.cpu()``, ``x.to("cpu")``                  a copy where ``x`` came from there, else ``x`` itself
``x.device``, ``x.is_cuda``, ``x.type()``     what it would be there; torch's own code is told what it is here
``.type("torch.cuda.FloatTensor")``           as ``.cuda()``, in that precision; ``torch.cuda.FloatTensor(…)`` likewise
``torch.cuda.is_available()`` and the like    one device, number 0, of no memory in use; torch's own code hears of none
seeds of CUDA                                 nothing: all numbers come from the CPU's generator, which is seeded anyway
streams, events, ``synchronize``, nvtx        nothing, in order; events tell the time
``autocast("cuda")``, ``GradScaler``          those of the CPU, in the same precision
half precision                                half, and float32 for calls that have no kernel in half on the CPU
``pin_memory``                                nothing
``torch.load`` of what was saved there        on the CPU, taken for being there
``nn.DataParallel``                           the module by itself
``torch.Generator("cuda")``                   one of the CPU
``set_default_device("cuda")``                remembered, done on the CPU
============================================  ======================================================================

Every tensor that would lie on a CUDA device is known by a weak reference; what is computed from it is there, too.
Not known are gradients inside hooks and what reaches the program otherwise than by a call: they count as on the CPU.
Graphs of CUDA calls, custom CUDA code and what speaks to the driver directly fail here as they do without this.
"""

import functools
import os
import re
import sys
import time
import types
import weakref
from collections import defaultdict

import torch

from .operands import tensors
from .recorder import Mode

CPU = torch.device("cpu")
TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
NO_KERNEL = re.compile(r"(not implemented|not supported|unsupported|n't support).*\b(Half|BFloat16)\b", re.IGNORECASE)
NARROW = (torch.float16, torch.bfloat16)
CAPABILITY = (8, 0)
"""The oldest that knows all precisions that the CPU knows."""
TYPES = {
    "Float": torch.float32, "Double": torch.float64, "Half": torch.float16, "BFloat16": torch.bfloat16,
    "Byte": torch.uint8, "Char": torch.int8, "Short": torch.int16, "Int": torch.int32, "Long": torch.int64,
    "Bool": torch.bool,
}  # fmt: skip


_AS_THEY_ARE = ("backward", "__get__", "__set__")
"""Calls in half precision that are not to be done again: they do no arithmetic, or have changed the graph by then."""


def _is_torchs(frame):
    return frame.f_code.co_filename.startswith(TORCH)


class Redirection:
    """``wire`` hears once that something was redirected: that is how a report knows what it speaks of."""

    def __init__(self, wire):
        self._wire = wire
        self._told = False
        self._homes = {}  # id of a tensor -> (weak reference to it, number of its device)
        self._loaded = None
        self.current = 0

    def note(self, what):
        if not self._told:
            self._told = True
            self._wire.send("redirected", what=what)

    # -- where a tensor would lie ---------------------------------------------------------------------------------

    def home(self, tensor):
        """The number of the CUDA device that the tensor would lie on, or None."""
        known = self._homes.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else None

    def put(self, tensor, number):
        """From here on the tensor counts as on that device, or on the CPU for None; returns it."""
        key = id(tensor)
        if number is None:
            self._homes.pop(key, None)
        else:
            self._homes[key] = (weakref.ref(tensor, lambda gone, key=key: self._forget(key, gone)), number)
        return tensor

    def _forget(self, key, reference):
        known = self._homes.get(key)
        if known is not None and known[0] is reference:
            del self._homes[key]

    def number_of(self, device):
        """The number of the CUDA device that is meant by ``device``, or None if it means none."""
        if isinstance(device, str):
            if device.partition(":")[0] != "cuda":
                return None
            device = torch.device(device)
        if isinstance(device, torch.device):
            return None if device.type != "cuda" else self.current if device.index is None else device.index
        return device if type(device) is int and device >= 0 else None

    def home_among(self, given):
        for tensor in given:
            number = self.home(tensor)
            if number is not None:
                return number
        return None

    def follow(self, given, result, number=None):
        """What comes out of a call lies on ``number``, else where the first of its tensors lies."""
        number = self.home_among(given) if number is None else number
        if number is not None:
            for tensor in (result,) if type(result) is torch.Tensor else tensors(result):
                if not any(tensor is one for one in given):
                    self.put(tensor, number)
        return result

    # -- calls ----------------------------------------------------------------------------------------------------

    def operation(self, recorder, func, args, kwargs, caller):
        """One torch call of the program's, done on the CPU and recorded as that."""
        special = _SPECIAL.get(func)
        if special is not None:
            result = special(self, recorder, func, args, kwargs, caller)
            if result is not NotImplemented:
                return result
        number, elsewhere = None, False
        if kwargs.get("device") is not None:
            number = self.number_of(kwargs["device"])
            elsewhere = number is None
            if number is not None:
                self.note(f"device={kwargs['device']}")
                kwargs = {**kwargs, "device": CPU}
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        given = _given(args, kwargs.values()) if kwargs else _given(args)
        for tensor in given:
            if tensor.dtype in NARROW and func.__name__ not in _AS_THEY_ARE:
                func = _InFloat(func)
                break
        result = recorder.operation(func, args, kwargs)
        return result if elsewhere else self.follow(given, result, number)

    def move(self, recorder, tensor, number, *more, **how):
        """``tensor.to`` the device of that number, None for the CPU: a copy where it would be one."""
        home = self.home(tensor)
        if number is not None:
            self.note("a move to a CUDA device")
        if number != home:
            how["copy"] = True
        result = recorder.operation(torch.Tensor.to, (tensor, CPU, *more), how)
        return result if result is tensor else self.put(result, number)

    def _cuda(self, recorder, func, args, kwargs, caller):
        device = args[1] if len(args) > 1 else kwargs.get("device")
        number = self.current if device is None else self.number_of(device)
        if number is None:
            return NotImplemented
        how = {"memory_format": kwargs["memory_format"]} if kwargs.get("memory_format") is not None else {}
        return self.move(recorder, args[0], number, **how)

    def _cpu(self, recorder, func, args, kwargs, caller):
        return NotImplemented if self.home(args[0]) is None else self.move(recorder, args[0], None)

    def _to(self, recorder, func, args, kwargs, caller):
        named = "device" in kwargs
        wanted = kwargs["device"] if named else args[1] if len(args) > 1 else kwargs.get("other")
        if isinstance(wanted, torch.Tensor):
            kwargs = {**kwargs, "dtype": wanted.dtype}
            kwargs.pop("other", None)
            number, more = self.home(wanted), args[2:]
        elif isinstance(wanted, str | torch.device | int):
            number, more = self.number_of(wanted), args[1:] if named else args[2:]
            if number is None and (torch.device(wanted).type != CPU.type or self.home(args[0]) is None):
                return NotImplemented
        else:
            return NotImplemented
        how = {name: value for name, value in kwargs.items() if name not in ("device", "non_blocking")}
        # positions after the device: dtype, non_blocking, copy
        if isinstance(wanted, torch.Tensor):
            more = (None, *more)
        for name, value in zip(("dtype", "non_blocking", "copy"), more, strict=False):
            if name != "non_blocking" and value is not None:
                how.setdefault(name, value)
        dtype = how.pop("dtype", None)
        return self.move(recorder, args[0], number, *(() if dtype is None else (dtype,)), **how)

    def _type(self, recorder, func, args, kwargs, caller):
        wanted = args[1] if len(args) > 1 else kwargs.get("dtype")
        home = self.home(args[0])
        if wanted is None:
            name = recorder.operation(func, args, kwargs)
            return name if home is None or _is_torchs(caller) else name.replace("torch.", "torch.cuda.", 1)
        name = wanted if isinstance(wanted, str) else "" if isinstance(wanted, torch.dtype) else _name_of_type(wanted)
        dtype = TYPES.get(name.rpartition(".")[2].removesuffix("Tensor"))
        if dtype is None:
            return NotImplemented
        return self.move(recorder, args[0], self.current if name.startswith("torch.cuda.") else None, dtype)

    def _device(self, recorder, func, args, kwargs, caller):
        home = self.home(args[0])
        return NotImplemented if home is None or _is_torchs(caller) else torch.device("cuda", home)

    def _is_cuda(self, recorder, func, args, kwargs, caller):
        return NotImplemented if self.home(args[0]) is None or _is_torchs(caller) else True

    def _is_cpu(self, recorder, func, args, kwargs, caller):
        return NotImplemented if self.home(args[0]) is None or _is_torchs(caller) else False

    def _get_device(self, recorder, func, args, kwargs, caller):
        home = self.home(args[0])
        return NotImplemented if home is None or _is_torchs(caller) else home

    def _data_set(self, recorder, func, args, kwargs, caller):
        result = recorder.operation(func, args, kwargs)
        self.put(args[0], self.home(args[1]))
        return result

    def _as_it_is(self, recorder, func, args, kwargs, caller):
        return recorder.operation(func, args, kwargs)

    def _itself(self, recorder, func, args, kwargs, caller):
        return args[0]

    # -- torch.load -----------------------------------------------------------------------------------------------

    def load(self, plain, *args, **kwargs):
        """What was saved from a CUDA device, or is sent to one, comes to the CPU and counts as there."""
        before, self._loaded = self._loaded, {}
        try:
            result = plain(*args, **kwargs)
            with torch._C.DisableTorchFunction():
                for tensor in tensors(result, 8):
                    if tensor.layout is torch.strided and tensor.numel():
                        start = tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()
                        self.put(tensor, self._loaded.get(start))
            return result
        finally:
            self._loaded = before

    def restore(self, storage, location):
        number = self.number_of(location)
        if number is None:
            return None
        self.note("a storage on a CUDA device")
        if self._loaded is not None:
            self._loaded[storage.data_ptr()] = number
        return storage


def redirected_mode(wire):
    """Patch torch; returns the class of the mode that the program's threads run under."""
    redirection = Redirection(wire)
    for patch in (_cuda_module, _accelerator, _precision, _generators, _default_device, _tensor_types, _loading,
                  _autograd, _modules):  # fmt: skip
        patch(redirection)
    return type("RedirectedMode", (_RedirectedMode,), {"redirection": redirection})


def _given(*groups):
    """The tensors among the arguments of a call; as ``tensors``, and quicker for what is most frequent."""
    found = []
    for group in groups:
        for one in group:
            if isinstance(one, torch.Tensor):
                found.append(one)
            elif type(one) in (list, tuple, dict):
                found.extend(tensors(one))
    return found


class _RedirectedMode(Mode):
    redirection = None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return self.redirection.operation(self._recorder, func, args, kwargs or {}, sys._getframe(1))


_SPECIAL = {
    torch.Tensor.cuda: Redirection._cuda,
    torch.Tensor.cpu: Redirection._cpu,
    torch.Tensor.to: Redirection._to,
    torch.Tensor.type: Redirection._type,
    torch.Tensor.get_device: Redirection._get_device,
    torch.Tensor.pin_memory: Redirection._itself,
    torch.Tensor.device.__get__: Redirection._device,
    torch.Tensor.is_cuda.__get__: Redirection._is_cuda,
    torch.Tensor.is_cpu.__get__: Redirection._is_cpu,
    torch.Tensor.data.__set__: Redirection._data_set,
    torch._C._nn._parse_to: Redirection._as_it_is,  # a module moves its tensors itself
}


class _InFloat:
    """A call on half precision: done in float32 and taken back to half where the CPU has no kernel for it."""

    def __init__(self, func):
        self._func = func
        self.__name__ = getattr(func, "__name__", "")
        self.__self__ = getattr(func, "__self__", None)

    def __call__(self, *args, **kwargs):
        try:
            return self._func(*args, **kwargs)
        except RuntimeError as error:
            if not NO_KERNEL.search(str(error)):
                raise
        narrow = next(t.dtype for t in (*tensors(args), *tensors(kwargs)) if t.dtype in NARROW)
        wide = [_widened(a) for a in args]
        result = self._func(*wide, **{name: _widened(value) for name, value in kwargs.items()})
        if wide and isinstance(result, torch.Tensor) and result is wide[0]:  # written in place
            with torch.no_grad():
                args[0].copy_(result)
            return args[0]
        return _narrowed(result, narrow)


def _widened(value):
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in NARROW else value
    return type(value)(map(_widened, value)) if type(value) in (list, tuple) else value


def _narrowed(value, dtype):
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.dtype == torch.float32 else value
    return type(value)(_narrowed(v, dtype) for v in value) if type(value) in (list, tuple) else value


def _name_of_type(kind):
    return f"{kind.__module__}.{kind.__name__}"


# -- torch.cuda ---------------------------------------------------------------------------------------------------


def _told(redirection, plain, answer, name):
    """``answer`` for the program, what is true for torch's own code."""

    def told(*args, **kwargs):
        if plain is not None and _is_torchs(sys._getframe(1)):
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


def _cuda_module(redirection):
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


def _accelerator(redirection):
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


# -- the rest of torch --------------------------------------------------------------------------------------------


def _precision(redirection):
    plain_autocast = torch.autocast.__init__

    @functools.wraps(plain_autocast)
    def autocast(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if redirection.number_of(device_type) is not None:
            redirection.note("autocast")
            device_type, dtype = "cpu", torch.get_autocast_gpu_dtype() if dtype is None else dtype
        plain_autocast(self, device_type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    torch.autocast.__init__ = autocast
    scaler = getattr(torch.amp, "GradScaler", None)
    if scaler is None:  # before PyTorch 2.3 there is none for the CPU
        old, plain_old = torch.cuda.amp.GradScaler, torch.cuda.amp.GradScaler.__init__

        @functools.wraps(plain_old)
        def switched_off(self, *args, **kwargs):
            redirection.note("GradScaler")
            plain_old(self, enabled=False)

        old.__init__ = switched_off
        return
    plain_scaler = scaler.__init__

    @functools.wraps(plain_scaler)
    def grad_scaler(self, device="cuda", *args, **kwargs):
        if redirection.number_of(device) is not None:
            redirection.note("GradScaler")
            device = "cpu"
        plain_scaler(self, device, *args, **kwargs)

    scaler.__init__ = grad_scaler


def _generators(redirection):
    plain = torch.Generator

    class Kind(type(plain)):
        def __call__(cls, device="cpu"):
            if redirection.number_of(device) is not None:
                redirection.note("torch.Generator")
                device = CPU
            return plain(device)

        def __instancecheck__(cls, other):
            return isinstance(other, plain)

    torch.Generator = Kind("Generator", (plain,), {"__module__": plain.__module__})


def _default_device(redirection):
    """``torch.set_default_device`` and ``with torch.device("cuda")``."""
    from torch.utils import _device

    plain = _device.DeviceContext.__torch_function__

    def dispatch(self, func, types, args=(), kwargs=None):
        number = redirection.number_of(self.device)
        if number is None:
            return plain(self, func, types, args, kwargs)
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func in _device._device_constructors() and kwargs.get("device") is None:
            redirection.note("the default device")
            redirection.follow([*tensors(args)], result, number)
        return result

    _device.DeviceContext.__torch_function__ = dispatch


def _tensor_types(redirection):
    class Kind(type):
        def __call__(cls, *args, **kwargs):
            redirection.note(f"torch.cuda.{cls.__name__}")
            return redirection.put(cls.plain(*args, **kwargs), redirection.current)

        def __instancecheck__(cls, other):
            return isinstance(other, cls.plain) and redirection.home(other) is not None

    for name, dtype in TYPES.items():
        plain = getattr(torch, f"{name}Tensor")
        names = {"__module__": "torch.cuda", "plain": plain, "dtype": dtype, "is_cuda": True}
        setattr(torch.cuda, f"{name}Tensor", Kind(f"{name}Tensor", (), names))
    plain_default = torch.set_default_tensor_type

    @functools.wraps(plain_default)
    def set_default_tensor_type(kind):
        name = kind if isinstance(kind, str) else _name_of_type(kind)
        if name.startswith("torch.cuda."):
            kind = name.replace("torch.cuda.", "torch.")
            torch.set_default_device(torch.device("cuda", redirection.current))
        plain_default(kind)

    torch.set_default_tensor_type = set_default_tensor_type


def _loading(redirection):
    torch.serialization.register_package(0, lambda storage: None, redirection.restore)
    plain = torch.load

    @functools.wraps(plain)
    def load(*args, **kwargs):
        return redirection.load(plain, *args, **kwargs)

    torch.load = torch.serialization.load = load

    def itself(self, device=None, *args, **kwargs):
        number = redirection.number_of(device)
        redirection.restore(self, torch.device("cuda", redirection.current if number is None else number))
        return self

    torch.UntypedStorage.cuda = torch.TypedStorage.cuda = itself


def _autograd(redirection):
    """Results of what passes through no torch function."""
    plain_apply = torch.autograd.Function.__dict__["apply"].__func__

    @functools.wraps(plain_apply)
    def apply(cls, *args, **kwargs):
        return redirection.follow([*tensors(args)], plain_apply(cls, *args, **kwargs))

    torch.autograd.Function.apply = classmethod(apply)
    plain_grad = torch.autograd.grad

    @functools.wraps(plain_grad)
    def grad(outputs, *args, **kwargs):
        return redirection.follow([*tensors(outputs)], plain_grad(outputs, *args, **kwargs))

    torch.autograd.grad = grad
    plain_new = torch.nn.Parameter.__new__

    @functools.wraps(plain_new)
    def new(cls, data=None, *args, **kwargs):
        return redirection.put(plain_new(cls, data, *args, **kwargs), redirection.home(data))

    torch.nn.Parameter.__new__ = staticmethod(new)


def _modules(redirection):
    """``DataParallel`` itself asks torch, which tells it that there is nothing to be parallel on."""
    plain = torch.nn.parallel.data_parallel

    @functools.wraps(plain)
    def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
        redirection.note("data_parallel")
        inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
        return module(*inputs, **(module_kwargs or {}))

    torch.nn.parallel.data_parallel = data_parallel
    plain_to = torch.nn.Module.to

    @functools.wraps(plain_to)
    def to(self, *args, **kwargs):
        args = tuple(torch.device("cuda", one) if type(one) is int else one for one in args)
        if type(kwargs.get("device")) is int:
            kwargs = {**kwargs, "device": torch.device("cuda", kwargs["device"])}
        return plain_to(self, *args, **kwargs)

    torch.nn.Module.to = to
    loader = torch.utils.data.DataLoader
    plain_iterator = loader._get_iterator

    @functools.wraps(plain_iterator)
    def get_iterator(self):
        wanted, self.pin_memory = self.pin_memory, False
        try:
            return plain_iterator(self)
        finally:
            self.pin_memory = wanted

    loader._get_iterator = get_iterator


# -- programs that may ask ----------------------------------------------------------------------------------------


def watch(wire):
    """Tell once that the program asks for CUDA, and leave it with torch's own answer."""
    told = []

    def watched(plain, name, whoever):
        @functools.wraps(plain)
        def asking(*args, **kwargs):
            if not told and (whoever or not _is_torchs(sys._getframe(1))):
                told.append(name)
                wire.send("asked", what=name)
            return plain(*args, **kwargs)

        return asking

    for name in ("is_available", "device_count", "_lazy_init"):
        setattr(torch.cuda, name, watched(getattr(torch.cuda, name), f"torch.cuda.{name}", name == "_lazy_init"))


def choose(wanted):
    """``cpu`` hides every GPU from the program, ``cuda:N`` all but one; CUDA reads this when it is first used."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if wanted == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    elif wanted.startswith("cuda:"):
        number, among = wanted.partition(":")[2], [one for one in visible.split(",") if one]
        os.environ["CUDA_VISIBLE_DEVICES"] = among[int(number)] if int(number) < len(among) else number
    if wanted != "cpu" and torch.version.cuda is not None:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else two runs may differ in their last bits
