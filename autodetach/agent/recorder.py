"""What every run records: backward passes, optimizer steps, failures, and who made which node.

The recorder patches torch where it must (each patch is named in :data:`PATCHES`), keeps no tensor and no graph
alive, and when it fails itself says so and lets the program run on.
"""

import contextlib
import functools
import os
import sys
import threading
import time
import traceback
import types
import weakref

import torch
from torch.overrides import TorchFunctionMode, _pop_mode, _push_mode

from . import graph, messages, trajectory
from .births import Births, sequence
from .by_hand import ByHand
from .operands import tensors
from .sites import Sites

PATCHES = (
    "torch.autograd.backward",
    "torch.autograd.grad",
    "torch.autograd.Function.apply",
    "torch.optim.Optimizer.__init__, its step hooks and what calls them",
    "torch.optim.Optimizer.zero_grad, torch.nn.Module.zero_grad",
    "torch.autograd.graph.saved_tensors_hooks",
    "threading.Thread._bootstrap_inner",
    "multiprocessing.process.BaseProcess._bootstrap; children are forked",
    "random.Random.__init__, numpy.random.bit_generator.randbits: who names no seed gets one",
)

_exit = os._exit  # the program may put something else in its place
DIFFERENTIABLE_PROPERTIES = {"T", "mT", "H", "mH", "real", "imag"}
LIVE_EVERY, LIVE_THEN = 12, 4
"""Live nodes are counted after each of so many steps, and after every so many steps from then on."""
MOST_WATCHED = 40
"""Of so many backward passes it is told whether they went through weights that were updated since."""
MEASURED_FIRST, MEASURED_THEN = 32, 5
"""Parameters are measured after each of an optimizer's first steps, then after some 2^4 of each doubling."""
TRAINING_FAILURES = frozenset({"second-backward", "in-place", "no-grad-fn"})
"""Other failures are often caught by the code that provokes them: ``t.numpy()``, else ``t.detach().numpy()``."""
CAUGHT = "the program caught the error itself"

# The methods of tensors that are written in Python hand themselves to us by name: what bears the name by then may be
# the program's own function, which has called them already.
_METHODS = {name: f for name, f in vars(torch.Tensor).items() if isinstance(f, types.FunctionType)}


def recorder_failure(method):
    """The recorder's own mistakes are reported, never raised into the program."""

    @functools.wraps(method)
    def guarded(self, *args, **kwargs):
        try:
            return method(self, *args, **kwargs)
        except Exception:
            self.wire.send("agent-error", text=traceback.format_exc(limit=-4))
            return None

    return guarded


# A CUDA device's part of a backward pass runs in a thread of torch's own, which only torch knows to be inside it.
_graph_task = getattr(torch._C, "_current_graph_task_id", lambda: -1)


def _process_name():
    processes = sys.modules.get("multiprocessing.process")
    return processes.current_process().name if processes is not None else ""


class _Depth(threading.local):
    """What a thread is in the middle of."""

    backward = step = False


def _in_transform():
    """Whether ``torch.func.grad``, ``vmap`` or the like is at work: what it hands around are no plain tensors."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def _name_of(method):
    """The name under which a function is a method of tensors; empty if it is none."""
    return next((name for name in _METHODS if vars(torch.Tensor)[name] is method), "")


class Recorder:
    """One run's book-keeping. Subclasses add what a mode needs by overriding the ``on_…`` methods."""

    def __init__(self, wire, root, request):
        # most runs watch no operands and no results: a call for nothing is not made ten thousand times a second
        self.has_before = type(self).before_operation is not Recorder.before_operation
        self.has_after = type(self).after_operation is not Recorder.after_operation
        self.has_call = type(self).call is not Recorder.call
        self.wire = wire
        self.births = Births()
        self.sites = Sites(root, lambda site, chain: wire.send("site", site=site, chain=chain), request.get("project"))
        self.steps = 0
        self.backwards = 0
        self._depth = _Depth()
        # (sequence number, "backward" | "grad" | "step", its count, retained, (steps, backwards) by then)
        self.events = []
        self.last_event = 0
        self.last_retained = 0  # the sequence number after the last backward that kept its graph
        self.optimizers = []  # weak references, in the order of their making
        self.failed = None
        self.at_end = []  # called before the run's last event
        self._leaf_numbers = {}
        self._leaf_sites = {}
        self._gradients = {}  # optimizer's number -> the norms of its gradients, or their marks, before its last step
        self._measured = {}  # optimizer's number -> whether its last step is written down whole
        self._own_steps = {}  # optimizer's number -> steps that it has made
        self._updated = {}  # leaf -> the sequence number at its last update
        self._by_hand = ByHand(self._name_of_leaf)
        self._watches_weights = bool(request.get("watch_weights"))
        self._devices = set()  # CUDA devices that the parent has heard of
        self._started = time.monotonic()
        self._followed = request.get("process") or ""
        self.horizon = request.get("horizon") or {}
        self.interventions = request.get("interventions") or {}
        self._main = threading.get_ident()

    # -- pauses -------------------------------------------------------------------------------------------------

    @property
    def paused(self):
        """Whether this thread is inside a backward pass or an optimizer's step: torch's own work, not the program's."""
        return self._depth.backward or self._depth.step or _graph_task() >= 0

    @contextlib.contextmanager
    def stepping(self, function, args, kwargs):
        """An optimizer steps. With a closure the program's own code runs in it, and is recorded; so is an optimizer
        that the program itself defines."""
        recorded = any(callable(a) for a in (*args, *kwargs.values())) or self.sites.owns(function)
        before = self._depth.step
        self._depth.step = not recorded
        try:
            with contextlib.nullcontext() if recorded else Mode.aside():
                yield
        finally:
            self._depth.step = before

    def safely(self, method, *args):
        """The recorder's own part in a call of the program's: what it raises is told, and None comes out.

        Subclasses of tensors do not notice what it reads.
        """
        try:
            with torch._C.DisableTorchFunctionSubclass():
                return method(*args)
        except Exception:
            self.wire.send("agent-error", text=traceback.format_exc(limit=-4))
            return None

    # -- operations ---------------------------------------------------------------------------------------------

    def operation(self, func, args, kwargs):
        """Run one torch call of the program's; called with the mode switched off."""
        if type(func) is types.FunctionType and not (func.__module__ or "").startswith("torch"):
            func = _METHODS.get(_name_of(func), func)
        name = getattr(func, "__name__", "")
        depth = self._depth
        if depth.backward or depth.step or name == "backward":
            return func(*args, **kwargs)
        if name == "__set__":
            result = func(*args, **kwargs)
            if func.__self__.__name__ == "requires_grad" and args[1]:
                self.safely(self.note_leaf, args[0], self.safely(self.sites.at, sys._getframe(2)))
            elif func.__self__.__name__ == "requires_grad":
                self.safely(self.note_frozen, args[0], self.safely(self.sites.at, sys._getframe(2)))
            return result
        if name == "__get__" and func.__self__.__name__ not in DIFFERENTIABLE_PROPERTIES:
            return self.attribute(func, args, kwargs)
        try:
            site = self.sites.at(sys._getframe(2))
            occurrence = self.births.occurrence(site)
        except Exception:
            self.wire.send("agent-error", text=traceback.format_exc(limit=-4))
            return func(*args, **kwargs)
        if self.has_before:
            before = self.safely(self.before_operation, func, name, site, occurrence, args, kwargs)
            if before is not None:
                args, kwargs = before
        start = sequence()
        try:
            result = self.call(func, name, site, args, kwargs) if self.has_call else func(*args, **kwargs)
        except Exception as error:
            self.failure(error, site, name)
            raise
        end = sequence()
        if end > start:
            self.births.add(start, end, site, occurrence)
        if self.has_after:
            self.safely(self.after_operation, func, name, site, occurrence, args, kwargs, result, start, end)
        if name == "requires_grad_" or (kwargs and kwargs.get("requires_grad")):
            self.safely(self.note_leaf, result, site)
            self.safely(self.note_frozen, result, site)
        return result

    def call(self, func, name, site, args, kwargs):
        return func(*args, **kwargs)

    def attribute(self, func, args, kwargs):
        """An attribute of a tensor is read that no gradient flows through."""
        return func(*args, **kwargs)

    def before_operation(self, func, name, site, occurrence, args, kwargs):
        return args, kwargs

    def after_operation(self, func, name, site, occurrence, args, kwargs, result, start, end):
        pass

    def note_leaf(self, tensor, site):
        if isinstance(tensor, torch.Tensor) and tensor.requires_grad and tensor.is_leaf:
            try:
                self._leaf_sites[tensor._cdata] = (site, weakref.ref(tensor))
            except TypeError:
                pass

    def note_frozen(self, tensor, site):
        """The program has said of a leaf that it requires no gradient."""

    # -- leaves -------------------------------------------------------------------------------------------------

    def held_parameters(self):
        """id of a parameter -> [(optimizer's number, place in it), ...], for every optimizer that is alive."""
        held = {}
        for i, ref in enumerate(self.optimizers):
            optimizer = ref()
            if optimizer is not None:
                parameters = [p for g in optimizer.param_groups for p in g["params"]]
                for j, p in enumerate(parameters):
                    held.setdefault(p._cdata, []).append((i, j))
        return held

    def describe_leaf(self, leaf, held):
        """A leaf as the parent hears of it: who holds it, who made it, has it a name still."""
        known = self._leaf_sites.get(leaf._cdata)
        number = self._leaf_numbers.setdefault(leaf._cdata, len(self._leaf_numbers))
        return {
            "leaf": number,
            "holders": held.get(leaf._cdata, []),
            "site": known[0] if known else None,
            "anonymous": bool(known) and known[1]() is None,
            "parameter": isinstance(leaf, torch.nn.Parameter),
            "shape": list(leaf.shape),
        }

    def function_apply(self, plain, cls, args, kwargs):
        """``SomeFunction.apply(...)`` passes through no torch function; it is an operation like any other."""
        site = self.safely(self.sites.here)
        if site is None:
            return plain(cls, *args, **kwargs)
        with torch._C.DisableTorchFunction():
            occurrence = self.births.occurrence(site)
            name = f"{cls.__name__}.apply"
            before = self.safely(self.before_operation, cls.apply, name, site, occurrence, args, kwargs)
        if before is not None:
            args, kwargs = before
        start = sequence()
        result = plain(cls, *args, **kwargs)
        end = sequence()
        if end > start:
            self.births.add(start, end, site, occurrence)
        with torch._C.DisableTorchFunction():
            self.safely(self.after_operation, cls.apply, name, site, occurrence, args, kwargs, result, start, end)
        return result

    # -- interventions ------------------------------------------------------------------------------------------

    def retained(self, call, wanted, create=False):
        """Whether this backward keeps its graph: what the program asks for, or what a reference run tries.

        ``let_go``: it does not, whatever the program asks for, unless it creates a graph.
        """
        if self.interventions.get("let_go"):
            return create
        sites = self.interventions.get("retain")
        return wanted or (bool(sites) and (sites == "*" or self.sites.here() in sites))

    def created(self, call, wanted):
        """Whether a gradient gets a graph: ``create`` names the positions of calls, whoever called from there."""
        places = self.interventions.get("create")
        if wanted or not places:
            return wanted
        chain = self.sites.chain_of(self.sites.here())
        return bool(chain) and list(chain[0][:5]) in places

    # -- backward -----------------------------------------------------------------------------------------------

    def backward(self, plain, call, roots, args, kwargs, retain, create):
        """One backward pass; ``call`` is "backward" or "grad"."""
        if self._depth.backward or _graph_task() >= 0 or _in_transform():
            return plain(*args, **kwargs)
        site = self.safely(self.sites.at, sys._getframe(2))
        if site is None:
            return plain(*args, **kwargs)
        if len(roots) == 1 and isinstance(args[0], torch.Tensor):
            roots = [self.safely(self.substitute_root, roots[0], site) if roots[0].requires_grad else roots[0]]
            args = (roots[0], *args[1:])
        number = self.backwards + 1
        before = self.safely(self.before_backward, call, roots, site, number, retain, create)
        occurrence, start = self.births.occurrence(site), sequence()
        self._depth.backward = True
        try:
            with Mode.aside():
                result = plain(*args, **kwargs)
        except Exception as error:
            self._depth.backward = False
            self.failure(error, site, call, roots, args[1] if call == "grad" and len(args) > 1 else ())
            raise
        finally:
            self._depth.backward = False
        if sequence() > start:  # create_graph=True
            self.births.add(start, sequence(), site, occurrence)
        self.backwards = number
        self._event(call, number, retain or create)
        if retain and not create and call == "backward":
            self.last_retained = self.last_event
        self._send_backward(call, roots, site, number, retain, create, before)
        self.safely(self.after_backward, call, roots, site, number, retain, create)
        if call == "grad":
            self.safely(self.gradients, result, roots, site, create)
        if not self.optimizers and call == "backward":
            self._goes_on()
            self._check_horizon()
        return result

    def substitute_root(self, root, site):
        return root

    def before_backward(self, call, roots, site, number, retain, create):
        return {}

    def after_backward(self, call, roots, site, number, retain, create):
        pass

    def gradients(self, result, roots, site, create):
        """``autograd.grad`` handed out gradients; without ``create`` they have no graph of their own."""

    def _event(self, kind, count, retained=False):
        self.last_event = sequence()
        self.events.append((self.last_event, kind, count, retained, (self.steps, self.backwards)))
        if len(self.events) % 64 == 0:
            with torch._C.DisableTorchFunction():
                self.safely(self.births.forget)

    @recorder_failure
    def _send_backward(self, call, roots, site, number, retain, create, extra):
        with torch.no_grad(), torch._C.DisableTorchFunction():
            fields = {"loss": trajectory.loss_values(roots), "devices": self.devices_of(roots)} | (extra or {})
            if not self.optimizers and call == "backward":
                fields["leaves"] = self._trained_by_hand(roots)
            if self._watches_weights and number <= MOST_WATCHED:
                fields["outdated"] = self._through_outdated_weights(roots)
        self.wire.send(
            "backward",
            n=number,
            call=call,
            site=site,
            steps=self.steps,
            retain=retain,
            create=create,
            **fields,
        )

    def _trained_by_hand(self, roots):
        rows, per_name = [], {}
        for root in roots:
            for leaf in graph.leaves(root.grad_fn) if root.grad_fn is not None else ():
                if self._by_hand.has_moved(leaf):
                    self._updated[leaf._cdata] = self.events[-2][0] if len(self.events) > 1 else 0
                rows.append(self._by_hand.row(leaf, per_name))
        return rows

    def _name_of_leaf(self, leaf):
        known = self._leaf_sites.get(leaf._cdata)
        return known[0] if known else f"#{self._leaf_numbers.setdefault(leaf._cdata, len(self._leaf_numbers))}"

    def has_outdated_weights(self, node):
        """Whether a leaf that the node was computed from has been updated since."""
        made = node._sequence_nr()
        return any(
            made < self._updated_at(below.variable) for below in graph.parents(node) if graph.is_leaf_node(below)
        )

    def _updated_at(self, leaf):
        # updates by hand are seen by their traces alone; between two backwards nobody looked yet
        if not self.optimizers and self._by_hand.knows(leaf) and self._by_hand.has_moved(leaf):
            self._updated[leaf._cdata] = self.last_event
        return self._updated.get(leaf._cdata, 0)

    def _through_outdated_weights(self, roots):
        """The site that made a node of the loss from a weight which has been updated since; None where there is none.

        What was computed from it has the old value, and so has its gradient."""
        latest = max(self._updated.values(), default=0)
        for root in roots:
            for node in graph.walk(root.grad_fn, limit=50_000) if root.grad_fn is not None else ():
                made = node._sequence_nr()
                if made < latest and self.has_outdated_weights(node):
                    origin = self.births.range_of(made)
                    return origin[0] if origin else ""
        return None

    # -- optimizers ---------------------------------------------------------------------------------------------

    def optimizer_number(self, optimizer):
        for i, ref in enumerate(self.optimizers):
            if ref() is optimizer:
                return i
        self.optimizers.append(weakref.ref(optimizer))
        return len(self.optimizers) - 1

    def before_step(self, optimizer, args, kwargs):
        number = self.optimizer_number(optimizer)
        self._measured[number] = self._is_measured(number)
        self._read_gradients(optimizer, number)

    @recorder_failure
    def _read_gradients(self, optimizer, number):
        self._gradients[number] = None
        with torch.no_grad(), torch._C.DisableTorchFunction():
            parameters = [p for g in optimizer.param_groups for p in g["params"]]
            read = trajectory.gradient_norms if self._measured[number] else trajectory.marks
            self._gradients[number] = read(parameters)

    def after_step(self, optimizer, args, kwargs):
        if not self._depth.step:  # with a closure the gradients are those of its last call
            self._read_gradients(optimizer, self.optimizer_number(optimizer))
        self.steps += 1
        self._event("step", self.steps)
        if self._watches_weights or self.last_retained:
            self._updated.update(
                (p._cdata, self.last_event) for g in optimizer.param_groups for p in g["params"] if p.grad is not None
            )
        self._goes_on()
        self._send_step(optimizer)
        self._check_horizon()

    @recorder_failure
    def _send_step(self, optimizer):
        with torch.no_grad(), torch._C.DisableTorchFunction():
            parameters = [p for g in optimizer.param_groups for p in g["params"]]
            number = self.optimizer_number(optimizer)
            whole = self._measured.get(number, True)
            self.wire.send(
                "step",
                n=self.steps,
                optimizer=number,
                site=self.sites.here(),
                params=trajectory.fingerprints(parameters) if whole else None,
                grads=self._gradients.get(number),
                devices=self.devices_of(parameters) if whole else (),
                backwards=self.backwards,
                **self.on_step(optimizer, parameters),
            )

    def _is_measured(self, optimizer):
        """Whether the step to come is written down whole: the first ones, every one from the failure on, and of those
        between so many an octave. Who trains otherwise at one step does so at those that follow it."""
        count = self._own_steps[optimizer] = self._own_steps.get(optimizer, 0) + 1
        since = self.horizon.get("live_from")
        if count <= MEASURED_FIRST or (since is not None and self.steps + 1 >= since):
            return True
        return count % (1 << max(0, count.bit_length() - MEASURED_THEN)) == 0

    def on_step(self, optimizer, parameters):
        return {}

    def devices_of(self, tensors):
        """The kinds of devices that the tensors lie on; a CUDA device is introduced by name."""
        for device in {t.device for t in tensors if t.is_cuda} - self._devices:
            self._devices.add(device)
            self.wire.send("device", number=device.index, name=torch.cuda.get_device_name(device))
        return sorted({t.device.type for t in tensors})

    def zeroed(self, parameters):
        """Gradients are about to be thrown away."""

    # -- the end ------------------------------------------------------------------------------------------------

    @property
    def progress(self):
        """Optimizer steps, or backward passes where the program updates by hand."""
        return self.steps if self.optimizers else self.backwards

    def _check_horizon(self):
        self._sample_live()
        if self._followed and self._followed != _process_name():
            return  # another worker may be ahead of the one whose training is compared
        most, least = self.horizon.get("most"), self.horizon.get("least")
        if most is not None and self.progress >= most:
            self.stop("horizon")
        seconds = self.horizon.get("seconds")
        if least is not None and self.progress >= least and time.monotonic() - self._started > seconds:
            self.stop("horizon")

    @recorder_failure
    def _sample_live(self):
        since = self.horizon.get("live_from")
        if since is None or self.progress < since:
            return
        passed = self.progress - since
        if passed > LIVE_EVERY and passed % LIVE_THEN:
            return
        before = next((at for at, kind, count, *_ in self.events if count >= since and kind != "grad"), 0)
        with torch._C.DisableTorchFunction():
            nodes, old = graph.live_nodes(before)
        self.wire.send("live", n=self.progress, nodes=nodes, old=old)

    def failure(self, error, site, call, roots=(), inputs=()):
        """An exception came out of torch: if it is one of ours, tell, and stop where nobody else would."""
        kind = messages.kind_of(error)
        if kind is None or getattr(error, "_autodetach_seen", False):
            return
        error._autodetach_seen = True
        serious = kind in TRAINING_FAILURES
        if not serious and (self.failed in TRAINING_FAILURES or self.wire.in_child):
            return
        self.failed = kind
        self._send_failure(error, kind, site, call, roots, inputs)
        in_thread = threading.get_ident() != self._main
        if serious and (in_thread or self.wire.in_child):
            # whoever waits for this thread or process might wait for ever
            self.finish("error", 1, "".join(traceback.format_exception(error)))

    @recorder_failure
    def _send_failure(self, error, kind, site, call, roots, inputs):
        with torch._C.DisableTorchFunction():
            self.wire.send(
                "failure",
                kind=kind,
                message=str(error),
                site=site,
                call=call,
                steps=self.progress,
                optimizer_steps=self.steps,
                backwards=self.backwards,
                devices=self.devices_of([*roots, *self._below(roots)]),
                still=self._by_hand.still(),
                **self.describe_roots(roots),
                **self.describe_inputs(roots, list(tensors(inputs))),
            )

    @staticmethod
    def _below(roots):
        return [leaf for root in roots if root.grad_fn is not None for leaf in graph.leaves(root.grad_fn, 20_000)]

    def describe_roots(self, roots):
        return {}

    def describe_inputs(self, roots, inputs):
        """What the derivative was asked for."""
        return {}

    def _goes_on(self):
        """The program trains: an error that it met before, it has dealt with."""
        if self.failed:
            self.wire.send("note", text=f"{CAUGHT} and trained on")
            self.failed = None

    def stop(self, how):
        self.finish("stopped", 0, "")

    def finish(self, how, status, text):
        """Say how the run ended and end it: the parent takes the process tree down."""
        self.send_end(how, status, text)
        self.wire.send("stop")
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        _exit(status)

    def send_end(self, how, status, text):
        if how == "exit" and status == 0 and self.failed and self.failed not in TRAINING_FAILURES:
            self.wire.send("note", text=CAUGHT)
        for report in self.at_end:
            self.safely(report)
        self.wire.send(
            "end",
            how=how,
            status=status,
            steps=self.progress,
            optimizer_steps=self.steps,
            backwards=self.backwards,
            traceback=text[-20_000:],
            seconds=time.monotonic() - self._started,
        )


class Mode(TorchFunctionMode):
    """Hands every torch call of the thread to the recorder."""

    def __init__(self, recorder):
        super().__init__()
        self._recorder, self._operation = recorder, recorder.operation

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return self._operation(func, args, kwargs or {})

    @staticmethod
    @contextlib.contextmanager
    def aside():
        """Without our mode, where it is the innermost: what would not be recorded need not pass through it."""
        mode = _pop_mode() if _innermost() is Mode else None
        try:
            yield
        finally:
            if mode is not None:
                _push_mode(mode)


def _innermost():
    """The class of the thread's innermost torch function mode; None without any."""
    count = torch._C._len_torch_function_stack()
    return type(torch._C._get_function_stack_at(count - 1)) if count else None
