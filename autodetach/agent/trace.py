"""Which values each value was computed from, with or without a graph: for derivatives that do not reach their input.

A *value* remembers the site that made a tensor and the values it was made of; it holds no tensor.
When ``autograd.grad`` fails, each of its inputs is described in the failure: ``inputs`` [{index, marked, used, maker,
call, marked_at, read, cuts, frames, twin}, ...]: whether it requires a gradient, lies in the graph, and which sites
made and marked it; ``read`` [site, place] is its first reading on the way to the output, None where the output was
not computed from it; ``cuts`` are the sites on that way that cut a graph; ``frames`` are as below; ``twin`` {maker,
marked, read, same} describes the nearest value that both it and the output were computed from, and whether that has the
same elements.

Interventions: ``mark`` [[site, place], ...] makes an operand require gradients where it is first read, ``swap``
{index of an input: twin} lets the derivative be taken of the twin. Each marking is told once: ``marked`` {site, place,
frames: [[[file, line, column, end line, end column], function, names], ...]}, innermost first.
"""

import weakref

import torch

from . import graph
from .names import names_in, own_frames
from .operands import tensors, writes_in_place
from .recorder import recorder_failure
from .shadow import DETACHING, REMAKING, Shadow

MOST_VALUES = 20_000


class Value:
    __slots__ = ("__weakref__", "age", "call", "graph", "parents", "single", "site", "tensor")

    def __init__(self, age, site, call, parents, tensor):
        self.age, self.site, self.call, self.parents = age, site, call, parents
        self.graph, self.single = tensor.requires_grad, tensor.numel() == 1
        self.tensor = weakref.ref(tensor)


class Traced(Shadow):
    def __init__(self, wire, root, request):
        super().__init__(wire, root, request)
        self._keep_watch = False
        self._values = {}  # id of a tensor -> its value
        self._mark = {(site, place) for site, place in self.interventions.get("mark") or ()}
        self._mark_sites = {site for site, _ in self._mark}
        self._swap = bool(self.interventions.get("swap"))
        self._told = set()
        self._ages = 0

    def _value(self, tensor):
        key = id(tensor)
        value = self._values.get(key)
        if value is None or value.tensor() is not tensor:
            value = self._new_value(tensor, None, "", [])
        return value

    def _new_value(self, tensor, site, call, parents):
        self._ages += 1
        value = Value(self._ages, site, call, parents, tensor)
        key = id(tensor)
        self._values[key] = value
        weakref.finalize(tensor, self._forget_value, key, weakref.ref(value)).atexit = False
        return value

    def _forget_value(self, key, reference):
        if self._values.get(key) is reference():
            self._values.pop(key, None)

    def call(self, func, name, site, args, kwargs):
        if site in self._mark_sites:
            for place, tensor in enumerate((*tensors(args), *tensors(kwargs))):
                if (site, place) in self._mark and tensor.is_leaf and tensor.is_floating_point():
                    self._tell_marked(site, place, tensor)
                    tensor.requires_grad_(True)
        return super().call(func, name, site, args, kwargs)

    @recorder_failure
    def _tell_marked(self, site, place, tensor):
        if (site, place) not in self._told:
            self._told.add((site, place))
            self.wire.send("marked", site=site, place=place, frames=self._names_of(tensor))

    def _names_of(self, tensor):
        rows = []
        for frame in own_frames(self.sites):
            position = self.sites.position(frame.f_code, frame.f_lasti)
            names = [name for name, kind in names_in(frame, tensor) if kind == "tensor"]
            rows.append([position[:5], frame.f_code.co_name, names])
        return rows

    @recorder_failure
    def after_operation(self, func, name, site, occurrence, args, kwargs, result, start, end):
        super().after_operation(func, name, site, occurrence, args, kwargs, result, start, end)
        parents = []
        for tensor in (*tensors(args), *tensors(kwargs)):
            parents.append(self._value(tensor))
        if writes_in_place(name) and parents:
            parents[0].parents += parents[1:]
        if len(self._values) < MOST_VALUES:
            for tensor in tensors(result):
                if not any(tensor is value.tensor() for value in parents):
                    self._new_value(tensor, site, name, parents)

    # -- a derivative fails -----------------------------------------------------------------------------------------

    def backward(self, plain, call, roots, args, kwargs, retain, create):
        if call == "grad" and self._swap and len(args) > 1:
            inputs = [args[1]] if isinstance(args[1], torch.Tensor) else list(args[1])
            twins = self.safely(self._twins, roots, inputs) or inputs
            if any(a is not b for a, b in zip(twins, inputs, strict=True)):
                args = (args[0], twins, *args[2:])
                found = super().backward(plain, call, roots, args, kwargs, retain, create)
                return tuple(g if g is None else g.reshape(i.shape) for g, i in zip(found, inputs, strict=True))
        return super().backward(plain, call, roots, args, kwargs, retain, create)

    def _twins(self, roots, inputs):
        below = ancestors([self._value(r) for r in roots])
        leaves = [leaf for root in roots if root.grad_fn is not None for leaf in graph.leaves(root.grad_fn)]
        return [t if any(t is leaf for leaf in leaves) else self._twin_tensor(t, below) for t in inputs]

    def _twin_tensor(self, tensor, below):
        twin = self._twin(self._value(tensor), below)
        other = twin.tensor() if twin is not None else None
        return other if other is not None and other.numel() == tensor.numel() and other.requires_grad else tensor

    @staticmethod
    def _twin(value, below):
        """The nearest value that the input was computed from, or that was computed from it, and the output too."""
        mine = sorted(ancestors([value]), key=lambda v: -v.age)
        return next((v for v in mine if v in below and v is not value), None)

    def describe_inputs(self, roots, inputs):
        below = ancestors([self._value(r) for r in roots])
        nodes = {n for root in roots if root.grad_fn is not None for n in graph.walk(root.grad_fn)}
        leaves = [leaf for root in roots if root.grad_fn is not None for leaf in graph.leaves(root.grad_fn)]
        rows = []
        for index, tensor in enumerate(inputs):
            value = self._value(tensor)
            used = any(tensor is leaf for leaf in leaves) or (tensor.grad_fn is not None and tensor.grad_fn in nodes)
            known = self._leaf_sites.get(tensor._cdata)
            twin = self._twin(value, below) if value not in below else None
            rows.append({
                "index": index,
                "marked": tensor.requires_grad,
                "used": used,
                "maker": value.site,
                "call": value.call,
                "marked_at": known[0] if known else None,
                "read": _reading(value, below) if value in below else None,
                "cuts": sorted(_cuts(value, below)) if value in below else [],
                "frames": self._names_of(tensor),
                "twin": self._describe_twin(tensor, twin, below),
            })  # fmt: skip
        return {"inputs": rows}

    def _describe_twin(self, tensor, twin, below):
        other = twin.tensor() if twin is not None else None
        if other is None:
            return None
        same = other.numel() == tensor.numel() and bool((other.reshape(-1) == tensor.reshape(-1)).all())
        return {"maker": twin.site, "marked": other.requires_grad, "read": _reading(twin, below), "same": same}


def ancestors(values):
    seen, todo = set(values), list(values)
    while todo:
        for parent in todo.pop().parents:
            if parent not in seen:
                seen.add(parent)
                todo.append(parent)
    return seen


def _reading(value, below):
    """[site, place among the operands] of the first operation on the way to the output that took the value."""
    readers = [v for v in below if v.site is not None and any(parent is value for parent in v.parents)]
    first = min(readers, key=lambda v: v.age, default=None)
    return None if first is None else (first.site, next(i for i, p in enumerate(first.parents) if p is value))


def _cuts(value, below):
    """Sites that cut a graph, of the values between ``value`` and the output."""
    through = {value}
    for each in sorted(below, key=lambda v: v.age):
        if any(parent in through for parent in each.parents):
            through.add(each)
    return {v.site for v in through if v is not value and v.call in (DETACHING | REMAKING)}
