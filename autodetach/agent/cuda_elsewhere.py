"""CUDA outside of ``torch.cuda``: autocast, generators, the default device, tensor types, ``torch.load``, modules."""

import functools

import torch

from .operands import tensors
from .redirection import CPU, TYPES, name_of_type


def patch_precision(redirection):
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


def patch_generators(redirection):
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


def patch_default_device(redirection):
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


def patch_tensor_types(redirection):
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
        name = kind if isinstance(kind, str) else name_of_type(kind)
        if name.startswith("torch.cuda."):
            kind = name.replace("torch.cuda.", "torch.")
            torch.set_default_device(torch.device("cuda", redirection.current))
        plain_default(kind)

    torch.set_default_tensor_type = set_default_tensor_type


def patch_loading(redirection):
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


def patch_autograd(redirection):
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


def patch_modules(redirection):
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


PATCHES = (
    patch_precision,
    patch_generators,
    patch_default_device,
    patch_tensor_types,
    patch_loading,
    patch_autograd,
    patch_modules,
)
