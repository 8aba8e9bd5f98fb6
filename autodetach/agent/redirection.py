"""Where the tensors of a program that is written for CUDA would lie, and what its calls mean on the CPU.

The whole table is that of :mod:`devices`.
"""

import os
import re
import sys
import weakref

import torch

from .operands import tensors
from .recorder import Mode

CPU = torch.device("cpu")
TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
NO_KERNEL = re.compile(r"(not implemented|not supported|unsupported|n't support).*\b(Half|BFloat16)\b", re.IGNORECASE)
NARROW = (torch.float16, torch.bfloat16)
TYPES = {
    "Float": torch.float32, "Double": torch.float64, "Half": torch.float16, "BFloat16": torch.bfloat16,
    "Byte": torch.uint8, "Char": torch.int8, "Short": torch.int16, "Int": torch.int32, "Long": torch.int64,
    "Bool": torch.bool,
}  # fmt: skip


_AS_THEY_ARE = ("backward", "__get__", "__set__")
"""Calls in half precision that are not to be done again: they do no arithmetic, or have changed the graph by then."""


def is_torchs(frame):
    """Whether the code of the frame is torch's own."""
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
            return name if home is None or is_torchs(caller) else name.replace("torch.", "torch.cuda.", 1)
        name = wanted if isinstance(wanted, str) else "" if isinstance(wanted, torch.dtype) else name_of_type(wanted)
        dtype = TYPES.get(name.rpartition(".")[2].removesuffix("Tensor"))
        if dtype is None:
            return NotImplemented
        return self.move(recorder, args[0], self.current if name.startswith("torch.cuda.") else None, dtype)

    def _device(self, recorder, func, args, kwargs, caller):
        home = self.home(args[0])
        return NotImplemented if home is None or is_torchs(caller) else torch.device("cuda", home)

    def _is_cuda(self, recorder, func, args, kwargs, caller):
        return NotImplemented if self.home(args[0]) is None or is_torchs(caller) else True

    def _is_cpu(self, recorder, func, args, kwargs, caller):
        return NotImplemented if self.home(args[0]) is None or is_torchs(caller) else False

    def _get_device(self, recorder, func, args, kwargs, caller):
        home = self.home(args[0])
        return NotImplemented if home is None or is_torchs(caller) else home

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


class RedirectedMode(Mode):
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


def name_of_type(kind):
    return f"{kind.__module__}.{kind.__name__}"
