"""Where the tensors that a reference run cuts lie between two steps, by the names that the program has for it.

After a backward pass the variables of the frames that led to it are searched, and what they hold: attributes,
modules and their buffers, entries of lists, deques and dicts. A *slot* is what a statement can assign to: a variable,
an attribute, an entry of something mutable. Tensors inside a tuple belong to the slot that the tuple lies in.

``holder``  {id, frame: [file, line, column, end line, end column], function, path, scope: "local" | "global",
            structure, parameter, methods: [[owner's path, method], ...], resets: [method, ...]}: one slot as seen from
            one frame. A ``parameter`` can only be detached in place.
            ``methods`` need no arguments and say that they detach; ``resets`` are methods of what
            holds it directly that name it and say that they start afresh.
            ``container``: "list", "deque" or empty for anything else.
``held``    {backward, rows: [[holder, path into the structure, birth], ...]}: what lay there after that backward.

A run may be asked to *empty* some slots: what a backward pass has used up is then taken out of the list that lies
there, as a program would do that empties it.
"""

import builtins
import dataclasses
import inspect
import sys
import time
import types
from collections import deque

import torch

from . import graph
from .probes import plain, structure

MOST_WALKS = 12
MOST_OBJECTS = 4000
MOST_FRAMES = 4
MOST_DEPTH = 6
MOST_ITEMS = 512
FEW_ITEMS = 4
"""Tensors of longer lists have no slot of their own, the last excepted: the list has."""
SECONDS = 0.4
"""All the searches of a run together may take so long."""

RESETTING = ("reset", "init_hidden", "init_state", "init_seq", "zero_state", "clear")

_ATOMS = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType, types.BuiltinFunctionType,
          types.MethodType, types.GeneratorType, types.CodeType, types.FrameType,
          torch.device, torch.dtype, torch.Size, torch.optim.Optimizer,
          torch.optim.lr_scheduler.LRScheduler, torch.Generator)  # fmt: skip
_INTERNAL = frozenset(vars(torch.nn.Module()))
_NO_OWNERS = (torch.nn.Module, dict, list, tuple, deque, object)


def is_detaching(name):
    return "detach" in name.lower() or "repackage" in name.lower()


def is_resetting(name):
    name = name.lower()
    return name.startswith(RESETTING) and "param" not in name


class Holders:
    """Searches on behalf of a reference run; ``recorder`` says which tensors are wanted.

    ``everything``: whatever is stale, not only what is cut. ``empty``: [[frame's file, line, column, end line,
    end column], path] of slots to empty.
    """

    def __init__(self, recorder, everything=False, empty=()):
        self.recorder = recorder
        self.everything = everything or bool(empty)
        self._empty = {(*place, path) for place, path in empty}
        self._numbers = {}
        self._walks = 0
        self._spent = 0.0

    def search(self, number):
        """Look after backward ``number``; called somewhere below the frame that called it."""
        if not self._empty and (self._walks >= MOST_WALKS or self._spent > SECONDS):
            return
        self._walks += 1
        begun = time.monotonic()
        rows, frames, frame = [], 0, sys._getframe(1)
        while frame is not None and frames < MOST_FRAMES:
            shown = self.recorder.sites.shown(frame.f_code)
            if shown is not None and shown[1]:
                frames += 1
                rows += self._in_frame(frame)
            frame = frame.f_back
        self._spent += time.monotonic() - begun
        if self._walks <= MOST_WALKS:
            self.recorder.wire.send("held", backward=number, rows=rows)

    def _in_frame(self, frame):
        code = frame.f_code
        names = dict(frame.f_locals)
        scopes = dict.fromkeys(names, "local")
        if names.keys() != frame.f_globals.keys():
            for name in code.co_names:
                if name in frame.f_globals and name not in names:
                    names[name], scopes[name] = frame.f_globals[name], "global"
        rows = []
        for found in _Walk(self, names).found:
            number = self._number(frame, found, scopes[found.root])
            rows += [[number, plain(inner), birth] for inner, birth in found.tensors]
            if self._empty and (*self._place(frame)[:5], found.path) in self._empty:
                self._take_out_what_is_used_up(found.value)
        return rows

    def _place(self, frame):
        return self.recorder.sites.position(frame.f_code, frame.f_lasti)

    def wants(self, tensor, birth):
        return self.recorder.watches(birth) or (self.everything and self.recorder.state_of(tensor) != graph.ALIVE)

    def _take_out_what_is_used_up(self, container):
        kept = [item for item in container if not self._is_used_up(item)]
        if isinstance(container, list):
            container[:] = kept
        elif isinstance(container, deque):
            container.clear()
            container.extend(kept)

    def _is_used_up(self, item):
        return any(self.recorder.state_of(t) != graph.ALIVE for _, t in tensors(item) if t.grad_fn is not None)

    def _number(self, frame, found, scope):
        key = (frame.f_code, frame.f_lasti, found.path)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            name, line, column, end_line, end_column, function, _ = self._place(frame)
            self.recorder.wire.send(
                "holder",
                id=number,
                frame=[name, line, column, end_line, end_column],
                function=function,
                path=found.path,
                scope=scope,
                structure=structure(found.value),
                container=next((k.__name__ for k in (list, deque) if isinstance(found.value, k)), ""),
                parameter=isinstance(found.value, torch.nn.Parameter),
                methods=_methods(found.owners),
                resets=_resets(found.owners, found.path),
            )
        return number


@dataclasses.dataclass
class _Slot:
    root: str
    path: str
    value: object
    owners: tuple
    """(path, object) of everything on the way to it, outermost first."""
    tensors: list


class _Walk:
    """Everything that the names lead to, nearest first."""

    def __init__(self, holders, names):
        self.holders = holders
        self.found = []
        self._seen = set()
        self._left = MOST_OBJECTS
        self._queue = deque(
            (name, name, value, ())
            for name, value in names.items()
            if not name.startswith("__") and name.isidentifier() and value is not builtins
        )
        while self._queue and self._left > 0:
            self._left -= 1
            self._slot(*self._queue.popleft())

    def _slot(self, root, path, value, owners):
        wanted = list(self._wanted(value))
        if wanted:
            self.found.append(_Slot(root, path, value, owners, wanted))
        if isinstance(value, (torch.Tensor, *_ATOMS)) or id(value) in self._seen or len(owners) >= MOST_DEPTH:
            return
        self._seen.add(id(value))
        owners = (*owners, (path, value))
        for suffix, item in _slots_of(value):
            if not isinstance(item, _ATOMS):
                self._queue.append((root, path + suffix, item, owners))

    def _wanted(self, value):
        """(path, birth) of each wanted tensor that lies in the value itself."""
        for inner, tensor in tensors(value):
            if tensor.grad_fn is not None:
                birth = self.holders.recorder.births.of(tensor)
                if birth is not None and self.holders.wants(tensor, birth):
                    yield inner, birth


def tensors(value, inner=(), depth=3):
    """(path, tensor) of what a tensor or a small container of tensors consists of."""
    if isinstance(value, torch.Tensor):
        yield inner, value
    elif depth and isinstance(value, (tuple, list, deque)) and len(value) <= MOST_ITEMS:
        for i, item in enumerate(value):
            yield from tensors(item, (*inner, i), depth - 1)
    elif depth and isinstance(value, dict) and len(value) <= MOST_ITEMS:
        for key, item in value.items():
            yield from tensors(item, (*inner, key), depth - 1)


def _slots_of(value):
    """(how to get there, what lies there) of everything that can be assigned to in an object."""
    if isinstance(value, dict):
        if len(value) <= MOST_ITEMS:
            yield from ((f"[{key!r}]", item) for key, item in list(value.items()) if type(key) in (str, int))
        return
    if isinstance(value, (list, deque)):
        if len(value) <= MOST_ITEMS:
            few, last = len(value) <= FEW_ITEMS, len(value) - 1
            for i, item in enumerate(value):
                if not isinstance(item, torch.Tensor):
                    yield f"[{i}]", item
                elif i == last:
                    yield "[-1]", item  # what was put in last is there, however many there are
                elif few:
                    yield f"[{i}]", item
        return
    if isinstance(value, tuple):
        for i, item in enumerate(value):
            if not isinstance(item, torch.Tensor):
                yield f"[{i}]", item
        return
    if getattr(getattr(value, "__dataclass_params__", None), "frozen", False):
        return
    module = isinstance(value, torch.nn.Module)
    try:
        attributes = list(vars(value).items())
    except TypeError:
        attributes = []
    for name in getattr(type(value), "__slots__", ()):
        if isinstance(name, str) and hasattr(value, name):
            attributes.append((name, getattr(value, name)))
    for name, item in attributes:
        if name.isidentifier() and not name.startswith("__") and not (module and name in _INTERNAL):
            yield f".{name}", item
    if module:
        yield from ((f".{name}", item) for name, item in (value._buffers | value._parameters).items())
        for name, child in value._modules.items():
            if name.isidentifier() and not isinstance(value, torch.nn.ModuleDict):
                yield f".{name}", child
            else:
                yield (f"[{name}]" if name.isdigit() else f"[{name!r}]"), child


def _methods(owners):
    """What the objects on the way can do about what they hold: [[owner's path, method], ...]."""
    return [
        [path, name]
        for path, owner in owners
        for name, method in _own_methods(owner)
        if is_detaching(name) and _needs_nothing(method)
    ][:8]


def _resets(owners, slot):
    """The methods of the innermost owner that set the slot to what it was at the start."""
    path, owner = owners[-1] if owners else ("", None)
    attribute = slot.removeprefix(f"{path}.").split("[")[0]
    return sorted({name for name, m in _own_methods(owner) if is_resetting(name) and attribute in m.__code__.co_names})[
        :8
    ]


def _own_methods(owner):
    for cls in type(owner).__mro__:
        if cls not in _NO_OWNERS and cls.__module__ != "builtins":
            for name, method in vars(cls).items():
                if not name.startswith("__") and isinstance(method, types.FunctionType):
                    yield name, method


def _needs_nothing(method):
    parameters = list(inspect.signature(method).parameters.values())[1:]
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
