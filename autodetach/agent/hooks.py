"""Installs the recorder into torch: each patch as small as it can be.

The patches are there before the program's imports, which may keep torch's functions by name; the recorder comes when a
run begins. Without one they do nothing.
"""

import contextlib
import functools
import multiprocessing
import multiprocessing.context
import multiprocessing.process
import sys
import threading

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from .deserted import child_died, thread_died
from .program import hide_own_frames


class _Nobody:
    """Records nothing: before a run, while the server imports what the program will."""

    paused = True

    def retained(self, call, wanted, create=False):
        return wanted

    created = retained

    def backward(self, plain, call, roots, args, kwargs, retain, create):
        return plain(*args, **kwargs)

    def stepping(self, *_):
        return contextlib.nullcontext()

    def nothing(self, *_):
        pass

    optimizer_number = zeroed = before_step = after_step = nothing


class _NoMode(contextlib.nullcontext):
    aside = contextlib.nullcontext


recorder, mode_class = _Nobody(), _NoMode
_prepared = False


def prepare():
    """Put the patches in place; the first call alone does something."""
    global _prepared
    if not _prepared:
        _prepared = True
        _backward()
        _function_apply()
        _optimizers()
        _threads()
        _processes()


def install(the_recorder, the_mode_class):
    """From now on ``the_recorder`` is told; threads of the program enter a mode of ``the_mode_class``."""
    global recorder, mode_class
    recorder, mode_class = the_recorder, the_mode_class
    prepare()


def _roots(tensors):
    if isinstance(tensors, torch.Tensor):
        return [tensors]
    if isinstance(tensors, (list, tuple)):
        return [t for t in tensors if isinstance(t, torch.Tensor)]
    return []


def _backward():
    plain_backward, plain_grad = torch.autograd.backward, torch.autograd.grad

    @functools.wraps(plain_backward)
    def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, *args, **kwargs):
        create = bool(create_graph)
        retain = recorder.retained("backward", bool(create if retain_graph is None else retain_graph), create)
        keep = retain_graph if create else (retain or None)
        return recorder.backward(
            plain_backward, "backward", _roots(tensors), (tensors, grad_tensors, keep, create_graph, *args), kwargs,
            retain, create,
        )  # fmt: skip

    @functools.wraps(plain_grad)
    def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, *args, **kwargs):
        create = recorder.created("grad", bool(create_graph))
        retain = recorder.retained("grad", bool(create if retain_graph is None else retain_graph))
        keep = True if retain and not create else retain_graph
        with torch._C.DisableTorchFunction():
            return recorder.backward(
                plain_grad, "grad", _roots(outputs), (outputs, inputs, grad_outputs, keep, create, *args), kwargs,
                retain, create,
            )  # fmt: skip

    torch.autograd.backward, torch.autograd.grad = backward, grad


def _function_apply():
    plain = torch.autograd.Function.__dict__["apply"].__func__

    @functools.wraps(plain)
    def apply(cls, *args, **kwargs):
        if recorder.paused:
            return plain(cls, *args, **kwargs)
        return recorder.function_apply(plain, cls, args, kwargs)

    torch.autograd.Function.apply = classmethod(apply)


def _optimizers():
    base = torch.optim.Optimizer
    plain_init, plain_zero = base.__init__, base.zero_grad
    plain_module_zero = torch.nn.Module.zero_grad

    @functools.wraps(plain_init)
    def init(self, *args, **kwargs):
        plain_init(self, *args, **kwargs)
        recorder.optimizer_number(self)

    @functools.wraps(plain_zero)
    def zero_grad(self, *args, **kwargs):
        with mode_class.aside():
            recorder.zeroed([p for g in self.param_groups for p in g["params"]])
            return plain_zero(self, *args, **kwargs)

    @functools.wraps(plain_module_zero)
    def module_zero_grad(self, *args, **kwargs):
        with mode_class.aside():
            recorder.zeroed(list(self.parameters()))
            return plain_module_zero(self, *args, **kwargs)

    plain_hook_step = base.__dict__["profile_hook_step"].__func__

    def profile_hook_step(function):
        hooked = plain_hook_step(function)

        @functools.wraps(hooked)
        def step(*args, **kwargs):
            with recorder.stepping(function, args[1:], kwargs):
                return hooked(*args, **kwargs)

        return step

    base.__init__, base.zero_grad, torch.nn.Module.zero_grad = init, zero_grad, module_zero_grad
    base.profile_hook_step = staticmethod(profile_hook_step)
    register_optimizer_step_pre_hook(lambda *args: recorder.before_step(*args))
    register_optimizer_step_post_hook(lambda *args: recorder.after_step(*args))


def _threads():
    """A torch function mode is per thread: enter it in the program's own threads too."""
    plain = threading.Thread._bootstrap_inner

    @functools.wraps(plain)
    def bootstrap(self):
        plain_hook = self._invoke_excepthook

        def hook(thread):
            error = sys.exc_info()[1]
            if isinstance(error, Exception):
                hide_own_frames(error)
                thread_died(recorder, error)
            plain_hook(thread)

        self._invoke_excepthook = hook
        with mode_class(recorder):
            plain(self)

    threading.Thread._bootstrap_inner = bootstrap


def _processes():
    """Children are forked, so that they inherit the recorder; a spawned interpreter would know nothing of it."""
    base = multiprocessing.process.BaseProcess
    plain_bootstrap = base._bootstrap

    @functools.wraps(plain_bootstrap)
    def bootstrap(self, *args, **kwargs):
        status = plain_bootstrap(self, *args, **kwargs)
        if status == 1:
            child_died(recorder)
        return status

    base._bootstrap = bootstrap
    fork = multiprocessing.get_context("fork")
    plain = multiprocessing.context.DefaultContext.get_context

    def get_context(self, method=None):
        return fork if method in ("spawn", "forkserver") else plain(self, method)

    multiprocessing.context.DefaultContext.get_context = get_context
    multiprocessing.context.DefaultContext.set_start_method = lambda self, method, force=False: None
    multiprocessing.get_context = multiprocessing.context._default_context.get_context
    multiprocessing.set_start_method = multiprocessing.context._default_context.set_start_method
    torch.multiprocessing.get_context = multiprocessing.get_context
    torch.multiprocessing.set_start_method = multiprocessing.set_start_method
