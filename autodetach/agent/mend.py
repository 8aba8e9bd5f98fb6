"""The broken program with an error mended on the fly wherever it comes up: the reference for errors of single calls.

``mend`` in the request's interventions names the kinds of errors that are mended:

``numpy-on-grad``      numpy reads the values of a tensor that is detached for it;
``deepcopy-non-leaf``  the values are copied, without the graph;
``leaf-in-place``      a writing that has no graph is done with grad mode off; where one with a graph goes into a
                       leaf that nobody optimises, that leaf stops to require gradients.

Each is reported as ``mended`` {kind, site, call, names: [[code, structure], ...], made, birth, places, …}: under which
names the user's frame knows the tensor, the site that made it, and, if its kind is watched, the places that it has
passed (see :mod:`probes`). Of a writing also: from_grad (what is written comes from a gradient),
graph (it has a graph), forward (within a module's forward), fresh (nothing was recorded since the last backward or
step), backwards, leaf. ``looked`` {sites}: the makers of leaves whose ``.grad`` the program reads.

``unflag`` names sites that make leaves: those do not require gradients.
``nudge`` names sites where the values that leave torch, or are copied, are changed by the part ``nudge_size``: a run
that trains the same all the same does not depend on them, or only by what it decides from them.
"""

import sys
import weakref

import torch

from . import messages
from .names import names_in, own_frames
from .nudge import LEAVING, NUDGE, nudged, phase
from .operands import tensors, writes_in_place
from .recorder import recorder_failure
from .reference import Reference

MOST_EVENTS = 500


class Mended(Reference):
    def __init__(self, wire, root, request):
        super().__init__(wire, root, request)
        self._kinds = frozenset(self.interventions.get("mend") or ())
        self._nudge = frozenset(self.interventions.get("nudge") or ())
        self._unflag = frozenset(self.interventions.get("unflag") or ())
        self._size = float(self.interventions.get("nudge_size") or NUDGE)
        self._said = set()
        self._gradients_in = {}  # id of a tensor -> weak reference: a gradient, or computed from one
        self._makers = {}  # id of a tensor -> (weak reference, the site that made it)
        self._looked = set()
        self._written = 0  # sequence number at the last backward, step or writing into a leaf
        self.at_end.append(lambda: wire.send("looked", sites=sorted(self._looked)))

    def note_leaf(self, tensor, site):
        if site in self._unflag and isinstance(tensor, torch.Tensor) and tensor.is_leaf:
            tensor.requires_grad_(False)
        super().note_leaf(tensor, site)

    # -- mending --------------------------------------------------------------------------------------------------

    def before_operation(self, func, name, site, occurrence, args, kwargs):
        return args, kwargs

    def before_backward(self, call, roots, site, number, retain, create):
        return {}

    def call(self, func, name, site, args, kwargs):
        try:
            result = super().call(func, name, site, args, kwargs)
        except (RuntimeError, TypeError) as error:
            kind = messages.kind_of(error)
            if kind not in self._kinds:
                raise
            result = _MENDS[kind](self, error, func, name, site, args, kwargs)
        if self._nudge and name in LEAVING and site in self._nudge:
            result = nudged(result, self._size)
        return result

    def numpy_on_grad(self, error, func, name, site, args, kwargs):
        self._tell("numpy-on-grad", site, name, args[0])
        return func(args[0].detach(), *args[1:], **kwargs)

    def deepcopy_non_leaf(self, error, func, name, site, args, kwargs):
        tensor, memo = args[0], args[1]
        self._tell("deepcopy-non-leaf", site, name, tensor)
        copied = memo[id(tensor)] = func(tensor.detach(), memo)
        if site in self._nudge and copied.is_floating_point():
            steps = 1.7 * torch.arange(copied.numel()) + phase(float(copied.sum()))
            copied += self._size * torch.cos(steps).view_as(copied).to(copied)
        return copied

    def leaf_in_place(self, error, func, name, site, args, kwargs):
        target = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if target is None:
            raise error
        leaf = target._base if target._is_view() else target
        others = [t for t in (*tensors(args[1:]), *tensors(kwargs)) if t is not target]
        with_graph = any(t.requires_grad for t in others)
        held = self.held_parameters()
        told = self.describe_leaf(leaf, held)
        known = self._leaf_sites.get(leaf._cdata)
        self._tell(
            "leaf-in-place",
            site,
            name,
            target,
            leaf=told,
            from_grad=any(self._from_gradient(t) for t in others),
            graph=with_graph,
            forward=_in_forward(),
            fresh=torch._C._autograd._get_sequence_nr() <= max(self._written, self.last_event),
            early=self.backwards == 0,
            site_of_leaf=known[0] if known else None,
        )
        self._written = torch._C._autograd._get_sequence_nr()
        if not with_graph:
            with torch.no_grad():
                return func(*args, **kwargs)
        if leaf is not target or told["holders"] or told["parameter"] or not leaf.is_leaf:
            raise error
        leaf.requires_grad_(False)
        return func(*args, **kwargs)

    @recorder_failure
    def _tell(self, kind, site, name, tensor, **facts):
        birth = self.births.of(tensor)
        known = self._makers.get(id(tensor))
        maker = known[1] if known is not None and known[0]() is tensor else None
        row = {
            "kind": kind,
            "site": site,
            "call": name,
            "names": self._names_of(tensor),
            "made": birth[0] if birth is not None else maker,
            "birth": birth,
            "places": sorted(self._through(self._passed.get(birth, ()), site, birth)),
            **facts,
        }
        key = repr({**row, "birth": birth and (birth[0], birth[2], birth[3])})
        if key not in self._said and len(self._said) < MOST_EVENTS:
            self._said.add(key)
            self.wire.send("mended", **row)

    def _names_of(self, tensor):
        """The names by which the innermost of the user's own functions can reach the tensor, with their structures."""
        frame = next(own_frames(self.sites), None)
        return names_in(frame, tensor) if frame is not None else []

    # -- what is computed from gradients --------------------------------------------------------------------------

    def attribute(self, func, args, kwargs):
        result = func(*args, **kwargs)
        if func.__self__.__name__ == "grad" and not self.paused:
            self._note_gradient(args[0], result)
        return result

    @recorder_failure
    def _note_gradient(self, leaf, gradient):
        known = self._leaf_sites.get(leaf._cdata)
        if known is not None:
            self._looked.add(known[0])
        if gradient is not None:
            self._remember(self._gradients_in, gradient)

    @staticmethod
    def _remember(table, tensor, *more):
        key = id(tensor)
        table[key] = (weakref.ref(tensor, lambda _, key=key: table.pop(key, None)), *more)

    def _from_gradient(self, tensor):
        known = self._gradients_in.get(id(tensor))
        return known is not None and known[0]() is tensor

    def gradients(self, result, roots, site, create):
        for tensor in tensors(result):
            self._remember(self._gradients_in, tensor)

    @recorder_failure
    def after_operation(self, func, name, site, occurrence, args, kwargs, result, start, end):
        if self._dual_values:
            for tensor in (*tensors(args), *tensors(kwargs)):
                birth = self.births.of(tensor)
                if self.watches(birth):
                    self._through(self._passed.get(birth, ()), site, birth)  # what handed it over has been used
        fresh = args[:1] if writes_in_place(name) else tensors(result)
        from_gradient = self._gradients_in and any(map(self._from_gradient, (*tensors(args), *tensors(kwargs))))
        for tensor in fresh:
            if isinstance(tensor, torch.Tensor):
                if from_gradient and tensor.grad_fn is None:
                    self._remember(self._gradients_in, tensor)
                if tensor.is_leaf and not writes_in_place(name):
                    self._remember(self._makers, tensor, site)


def _in_forward():
    """Whether a module's forward is under way."""
    forward = torch.nn.Module._call_impl.__code__
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is forward:
            return True
        frame = frame.f_back
    return False


_MENDS = {
    "numpy-on-grad": Mended.numpy_on_grad,
    "deepcopy-non-leaf": Mended.deepcopy_non_leaf,
    "leaf-in-place": Mended.leaf_in_place,
}
