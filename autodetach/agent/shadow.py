"""Where a loss lost its graph: a shadow of the operations that autograd did not record.

For every result without a graph that was computed from something with one (or from another such result) a small
node remembers the site and why: grad mode was off, the tensor was detached, the operation has no derivative, or the
values came from a first-order ``autograd.grad``. Shadow nodes hold no tensors; they die with the last tensor that
leads to them. When a backward fails for want of a graph, the shadow of its root is reported, oldest node first:
``shadow`` {roots, nodes: [[site, call, reason, grad mode, inference, on path, switch, learner], ...], left}.
``on path`` is true where a gradient would have flowed from the root through that operation to something that learns;
``switch`` is the site that switched grad mode off; ``learner`` is the (optimizer, place) of a parameter below it;
``left`` are the last places where a value left torch (``.item()``, ``.numpy()``).

Interventions, each a list of sites: ``grad_on`` runs the operations there with grad mode on, ``undetach`` hands out
what is detached there as it was, ``retensor`` makes a tensor of tensors without cutting them off, ``thaw`` makes
parameters require gradients again when an optimizer is made there, ``nudge`` changes values a little that leave
there. ``frozen`` {rows: [[optimizer, place, site that froze it], ...], leaves, made: [site of each optimizer, ...]}
tells which parameters an optimizer holds although they require no gradient, and how many leaves were frozen in all.

Without an optimizer every leaf that needs gradients may learn. A run with grad mode on goes on and shows which ones
really do: ``updated`` {leaves} at its end, each named by its first reading with grad mode off. The intervention
``learners`` restricts a shadow run to those.
"""

import functools
import weakref

import torch

from . import trajectory
from .nudge import nudged
from .operands import replace, tensors
from .recorder import recorder_failure
from .reference import Observer

DETACHING = frozenset(["detach", "detach_", "data"])
LEAVING = frozenset(["item", "tolist", "numpy", "__float__", "__int__", "__array__", "__index__", "__bool__"])
CREATING = frozenset(["zeros_like", "ones_like", "rand_like", "randn_like", "empty_like", "full_like", "randint_like",
                      "new_zeros", "new_ones", "new_empty", "new_full"])  # fmt: skip
REMAKING = frozenset(["tensor", "as_tensor", "new_tensor"])
"""A new tensor of the values of others, or of numbers."""


class Node:
    __slots__ = (
        "__weakref__",
        "age",
        "call",
        "grad",
        "inference",
        "parents",
        "reason",
        "rooted",
        "site",
        "switch",
    )  # fmt: skip

    def __init__(self, age, site, call, reason, parents, switch, rooted):
        self.age, self.site, self.call, self.reason, self.parents = age, site, call, reason, parents
        self.switch, self.rooted = switch, rooted
        self.grad, self.inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()


class Shadow(Observer):
    def __init__(self, wire, root, request):
        super().__init__(wire, root, request)
        self._nodes = {}  # id of a tensor -> (weak reference to it, its shadow node)
        self._gradient_of = {}  # id of a tensor -> (weak reference, sites of the first-order gradients in it)
        self._age = 0
        self._left = []
        self._checkpoints = []
        self._grad_on = set(self.interventions.get("grad_on") or ())
        self._undetach = frozenset(self.interventions.get("undetach") or ())
        self._retensor = frozenset(self.interventions.get("retensor") or ())
        self._thaw = frozenset(self.interventions.get("thaw") or ())
        self._nudge = frozenset(self.interventions.get("nudge") or ())
        self._frozen = {}  # leaf -> (weak reference, the site that froze it)
        self._optimizer_sites = {}
        self._keep_watch = request.get("mode") == "shadow"
        self._first_read = {}  # leaf -> (its first reading with grad mode off, weak reference, fingerprint then)
        learners = self.interventions.get("learners")
        self._learners = None if learners is None else set(learners)
        if not self._keep_watch:
            self.at_end.append(self._report_updated)
        self._switch = None
        self._watch_grad_mode()
        if self.interventions.get("no_checkpoint"):
            _run_without_checkpoints()

    def _watch_grad_mode(self):
        """Note which line of the program switches grad mode off."""
        for kind, names in (
            (torch.no_grad, ["__enter__"]),
            (torch.inference_mode, ["__enter__"]),
            (torch.set_grad_enabled, ["__init__", "__enter__"]),
        ):
            for name in names:
                if name in kind.__dict__:
                    setattr(kind, name, self._noting(kind.__dict__[name]))

    def _noting(self, plain):
        @functools.wraps(plain)
        def switching(*args, **kwargs):
            before = torch.is_grad_enabled()
            result = plain(*args, **kwargs)
            if before and not torch.is_grad_enabled() and not self.paused:
                self._switch = self.sites.here()
            return result

        return switching

    def node_of(self, tensor):
        known = self._nodes.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else None

    def _remember(self, tensor, node):
        key = id(tensor)
        self._nodes[key] = (weakref.ref(tensor, lambda _, key=key: self._nodes.pop(key, None)), node)

    def _learns(self, tensor):
        """What makes a gradient through the tensor wanted: a parameter that an optimizer holds, or a graph."""
        if tensor.grad_fn is not None:
            return "graph"
        held = self.held_parameters()
        whole = tensor._base if tensor._is_view() else tensor  # with grad mode off a view of a parameter is a leaf, too
        if not held:
            name = self._first_read.get(whole._cdata, ("leaf",))[0]
            return name if self._learners is None or name in self._learners else None
        return held.get(whole._cdata, [None])[0]

    def note_frozen(self, tensor, site):
        if isinstance(tensor, torch.Tensor) and tensor.is_leaf and not tensor.requires_grad:
            self._frozen[tensor._cdata] = (weakref.ref(tensor), site)

    def optimizer_number(self, optimizer):
        number = super().optimizer_number(optimizer)
        if number not in self._optimizer_sites:
            site = self._optimizer_sites[number] = self.sites.here()
            if site in self._thaw:
                for group in optimizer.param_groups:
                    for p in group["params"]:
                        p.requires_grad_(True)
        return number

    def attribute(self, func, args, kwargs):
        if func.__self__.__name__ != "data":
            return func(*args, **kwargs)
        site = self.sites.here()
        if site in self._undetach:
            return args[0]
        result = func(*args, **kwargs)
        self.after_operation(func, "data", site, 0, args, kwargs, result, 0, 0)
        return result

    def call(self, func, name, site, args, kwargs):
        if site in self._undetach and name in DETACHING:
            return args[0]
        if site in self._retensor and name in REMAKING:
            return _made_of(args[-1] if name != "new_tensor" else args[1], kwargs)
        result = self._called(func, name, site, args, kwargs)
        if site in self._nudge and name in LEAVING:
            result = nudged(result)
        return result

    def _called(self, func, name, site, args, kwargs):
        if site in self._grad_on and not torch.is_grad_enabled():
            with torch.inference_mode(False), torch.enable_grad():
                # what was made in inference mode cannot be saved for backward, a copy can
                args = tuple(replace(a, (), lambda t, _: t.clone() if t.is_inference() else t) for a in args)
                return func(*args, **kwargs)
        return func(*args, **kwargs)

    @recorder_failure
    def after_operation(self, func, name, site, occurrence, args, kwargs, result, start, end):
        if not torch.is_grad_enabled() and not self.optimizers:
            self._note_readings(site, args, kwargs)
        if not self._keep_watch:
            return
        if self._gradient_of:
            self._constants(args, kwargs, result, name)
        if name in LEAVING:
            if args and isinstance(args[0], torch.Tensor) and (args[0].requires_grad or self.node_of(args[0])):
                self._left = [*self._left[-49:], [site, name]]
            return
        if name in CREATING:
            return
        parents, lost, learns = [], False, None
        for tensor in (*tensors(args), *tensors(kwargs)):
            node = self.node_of(tensor)
            if node is not None:
                parents.append(node)
            elif tensor.requires_grad:
                lost = True
                learns = learns or self._learns(tensor)
        if not parents and not lost:
            if name in REMAKING and self._left and result.is_floating_point() and not result.requires_grad:
                self._age += 1
                self._remember(result, Node(self._age, site, name, "numbers", [], None, None))
            return
        for tensor in tensors(result):
            if not tensor.requires_grad:
                self._age += 1
                if tensor.is_floating_point() or tensor.is_complex():
                    if name in DETACHING:
                        reason = "detached"
                    elif name in REMAKING:
                        reason = "remade"
                    elif self._checkpoints and not torch.is_grad_enabled():
                        reason = "checkpoint"
                    elif not torch.is_grad_enabled():
                        reason = "grad-off"
                    else:
                        reason = "no-derivative" if lost else "follows"
                else:
                    reason = "no-derivative"
                # a gradient would come from here to something that needs one
                rooted = None
                if reason != "no-derivative":
                    rooted = learns or next((p.rooted for p in parents if p.rooted), None)
                switch = None if torch.is_grad_enabled() else self._switch
                where = self._checkpoints[-1] if reason == "checkpoint" else site
                self._remember(tensor, Node(self._age, where, name, reason, parents, switch, rooted))

    def _note_readings(self, site, args, kwargs):
        for i, tensor in enumerate((*tensors(args), *tensors(kwargs))):
            if tensor.requires_grad and tensor.grad_fn is None:
                whole = tensor._base if tensor._is_view() else tensor
                if whole._cdata not in self._first_read:
                    print_ = trajectory.fingerprint(whole)
                    self._first_read[whole._cdata] = (f"{site}:{i}", weakref.ref(whole), print_)

    def _report_updated(self):
        if not self.optimizers and self._first_read:
            rows = [(name, leaf(), print_) for name, leaf, print_ in self._first_read.values()]
            names = [n for n, leaf, print_ in rows if leaf is not None and trajectory.fingerprint(leaf) != print_]
            self.wire.send("updated", leaves=sorted(names))

    def function_apply(self, plain, cls, args, kwargs):
        if cls.__name__ != "CheckpointFunction":
            return super().function_apply(plain, cls, args, kwargs)
        with torch._C.DisableTorchFunction():
            self._checkpoints.append(self.sites.here())
        try:
            return plain(cls, *args, **kwargs)
        finally:
            self._checkpoints.pop()

    def _constants(self, args, kwargs, result, name):
        """Follow what was computed from first-order gradients, also where it has a graph of its own."""
        if name in DETACHING or name in CREATING or not torch.is_grad_enabled():
            return
        sites = set()
        for tensor in (*tensors(args), *tensors(kwargs)):
            known = self._gradient_of.get(id(tensor))
            if known is not None and known[0]() is tensor:
                sites |= known[1]
        if sites:
            for tensor in tensors(result):
                if tensor.is_floating_point():
                    self._follow(tensor, sites)

    def _follow(self, tensor, sites):
        key = id(tensor)
        self._gradient_of[key] = (weakref.ref(tensor, lambda _, key=key: self._gradient_of.pop(key, None)), sites)

    def after_backward(self, call, roots, site, number, retain, create):
        super().after_backward(call, roots, site, number, retain, create)
        for root in roots:
            known = self._gradient_of.get(id(root))
            if known is not None and known[0]() is root:
                self.wire.send("constants", backward=number, sites=sorted(known[1]))

    def gradients(self, result, roots, site, create):
        if not create:
            for tensor in tensors(result):
                self._follow(tensor, {site})
        for tensor in tensors(result):
            if not tensor.requires_grad:
                self._age += 1
                self._remember(tensor, Node(self._age, site, "grad", "first-order", [], None, "gradient"))

    def describe_roots(self, roots):
        if not roots:
            return super().describe_roots(roots)
        self._report([r for r in roots if r.grad_fn is None])
        return super().describe_roots(roots)

    @recorder_failure
    def _report(self, roots):
        on_path, seen = set(), {}
        todo = [(self.node_of(r), True) for r in roots if self.node_of(r) is not None]
        while todo:
            node, flows = todo.pop()
            flows = flows and node.reason != "no-derivative"
            if seen.get(node) is None or (flows and node.rooted and node not in on_path):
                seen[node] = True
                if flows and node.rooted:
                    on_path.add(node)
                todo += [(p, flows) for p in node.parents]
        rows, known = [], set()
        for node in sorted(seen, key=lambda n: n.age):
            row = (
                node.site,
                node.call,
                node.reason,
                node.grad,
                node.inference,
                node in on_path,
                node.switch,
                str(node.rooted),
            )
            if row not in known and len(rows) < 3000:
                known.add(row)
                rows.append(row)
        self.wire.send("shadow", roots=len(roots), nodes=rows, left=self._left)
        self._report_frozen()

    def _report_frozen(self):
        rows = []
        for number, ref in enumerate(self.optimizers):
            optimizer = ref()
            held = [p for g in optimizer.param_groups for p in g["params"]] if optimizer is not None else []
            known = [self._frozen.get(p._cdata) if not p.requires_grad else None for p in held]
            rows += [[number, place, k[1]] for place, k in enumerate(known) if k is not None and k[0]() is held[place]]
        if rows:
            made = [self._optimizer_sites.get(number) for number in range(len(self.optimizers))]
            leaves = sum(ref() is not None for ref, _ in self._frozen.values())
            self.wire.send("frozen", rows=rows, leaves=leaves, made=made)


def _made_of(value, options):
    """What ``torch.tensor`` would make of tensors in lists, with their graphs."""
    made = _stacked(value)
    return made.to(dtype=options.get("dtype"), device=options.get("device"))


def _stacked(value):
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, (list, tuple)) and any(True for _ in tensors(value)):
        return torch.stack([_stacked(v) for v in value])
    return torch.tensor(value)


def _run_without_checkpoints():
    """A checkpointed function is just called: the same numbers and gradients, without saving memory."""
    import torch.utils.checkpoint

    def checkpoint(function, *args, use_reentrant=None, context_fn=None, determinism_check=None, debug=None,
                   preserve_rng_state=None, **kwargs):  # fmt: skip
        return function(*args, **kwargs)

    torch.utils.checkpoint.checkpoint = checkpoint
