"""The reference run: the broken program with what is dead cut on the fly.

A *stale operand* is a tensor whose graph reaches nodes that an earlier backward has freed, or that saved a value
which has been changed since, or that an earlier backward has kept (``retain_graph=True``) although the weights below
them have been updated since. It is handed to the operation detached, and the *pair* (that very tensor, this reading
site) is reported. A *replay* is given the pairs of an earlier run and cuts every reading of them, the first one
included; what comes out is how the program would train had its author cut there.

What is computed from a cut operand is *marked* with the pair, and with the places (see :mod:`probes`) that every way
from the operand's making to there has passed: at a backward these are the places where an edit would have cut it.

``pair`` events carry: id, birth, site, call, operand, state ("freed", "outdated" or "live" for a reading that only a
replay cuts), in_place, known (asked for by the parent), made and read ([steps, backwards] then), since (the events
between the tensor's making and this reading), leaves, history (pairs inside the tensor's own past), past (the sites
that made its graph). ``reached`` events list the pairs that lie in the past of a backward's root, each with its places;
``flow`` events are live readings of watched tensors that were not cut; ``root`` events tell of a backward that was
called on a stale tensor; ``fed`` lists the pairs whose tensor went on into an operation with a parameter: what feeds a
model, not a loss alone. ``starts`` lists the readings that took data at first, where later ones are cut. ``silenced``
lists the pairs that make a whole term of a loss constant: nothing else than what was cut would have taught anybody
through it.
"""

import weakref
from bisect import bisect_right
from operator import itemgetter

import torch

from . import graph, trajectory
from .holders import Holders
from .operands import DROPPED, RANDOM, READERS, has_float, replace, tensors, writes_in_place
from .readings import Readings
from .recorder import Recorder, recorder_failure

MOST_PAIRS = 4000
_number = itemgetter(0)
ADDING = frozenset({"add", "__add__", "__radd__", "__iadd__", "add_", "sub", "__sub__", "__rsub__", "rsub", "__isub__",
                    "sub_", "stack"})  # fmt: skip


class Observer(Recorder):
    """Runs the program as it is; at a failure it looks at the root's graph.

    Interventions, each a list of sites: ``clone`` hands the operations there copies of their operands, ``clone_result``
    hands out copies of their results, ``fresh_root`` makes a backward that is called there start from the newest tensor
    of the same maker instead of one that was backpropagated before.
    """

    def __init__(self, wire, root, request):
        super().__init__(wire, root, request)
        self._clone = set(self.interventions.get("clone") or ())
        self._clone_result = set(self.interventions.get("clone_result") or ())
        self._fresh_root = set(self.interventions.get("fresh_root") or ())
        self._written = set()  # sites that wrote in place into something with a graph
        if self._clone:
            self.at_end.append(lambda: wire.send("written", sites=sorted(self._written)))
        self._newest = {}  # (site, distance from the end, output) -> weak reference to the newest scalar made there
        if type(self) is Observer:
            self.has_after = bool(self._fresh_root or self._clone)
            self.has_call = bool(self._clone or self._clone_result)

    def call(self, func, name, site, args, kwargs):
        if site in self._clone and not writes_in_place(name):
            args = tuple(replace(a, (), lambda t, _: t.clone()) for a in args)
        result = func(*args, **kwargs)
        if site in self._clone_result and isinstance(result, torch.Tensor) and result.requires_grad:
            result = result.clone()
        return result

    def after_operation(self, func, name, site, occurrence, args, kwargs, result, start, end):
        in_place = writes_in_place(name) or kwargs.get("inplace")
        if self._clone and in_place and isinstance(args[0], torch.Tensor) and args[0].requires_grad:
            self._written.add(site)
        if self._fresh_root and isinstance(result, torch.Tensor) and result.dim() == 0 and result.grad_fn is not None:
            self._newest[site, end - result.grad_fn._sequence_nr(), result.output_nr] = weakref.ref(result)

    def substitute_root(self, root, site):
        """The tensor that a backward at ``site`` should have been called on."""
        if site not in self._fresh_root or root.grad_fn is None:
            return root
        if root.grad_fn._sequence_nr() not in self.root_numbers:
            return root
        birth = self.births.of(root)
        newest = self._newest.get((birth[0], birth[2], birth[3])) if birth else None
        fresh = newest() if newest is not None else None
        return root if fresh is None else fresh

    def describe_roots(self, roots):
        with torch.no_grad():
            values = self.safely(trajectory.loss_values, roots)
        return {
            "roots": [self.describe_root(r) for r in roots if r.grad_fn is not None],
            "values": values,
            "shapes": [list(r.shape) for r in roots],
        }

    def made(self, number):
        """[optimizer steps, backwards] that were over when node ``number`` was made."""
        after = bisect_right(self.events, number, key=_number)
        return list(self.events[after - 1][4]) if after else [0, 0]

    def since(self, number):
        """The events after the making of node ``number``: [[kind, count, retained], ...], the first eight."""
        after = bisect_right(self.events, number, key=_number)
        return [list(event[1:4]) for event in self.events[after : after + 8]]

    def describe_root(self, root):
        """Where the root's graph is dead, and what the living part of it is made of."""
        dead, states = [], {}
        again = root.grad_fn._sequence_nr() in self.root_numbers
        for node in graph.walk(root.grad_fn, limit=50_000):
            state = graph.node_state(node)
            if state != graph.ALIVE:
                number = node._sequence_nr()
                origin = self.births.range_of(number)
                states[state] = states.get(state, 0) + 1
                if len(dead) < 40:
                    dead.append({
                        "state": state,
                        "node": type(node).__name__,
                        "site": origin[0] if origin else None,
                        "made": self.made(number),
                        "since": self.since(number),
                        "names": graph.outdated_names(node) if state == graph.OUTDATED else [],
                    })  # fmt: skip
        number = root.grad_fn._sequence_nr()
        held = self.held_parameters()

        def is_parameter(leaf):
            return isinstance(leaf, torch.nn.Parameter) or leaf._cdata in held

        return {
            "again": again,
            "fed": graph.dead_part_feeds_a_model(root.grad_fn, is_parameter),
            "alone": not graph.learns_apart_from_the_dead_part(root.grad_fn, is_parameter),
            "made": self.made(number),
            "since": self.since(number),
            "birth": self.births.of(root),
            "dead": dead,
            "states": states,
            "leaves": [self.describe_leaf(leaf, held) for leaf in graph.leaves(root.grad_fn)[:500]],
        }

    @property
    def root_numbers(self):
        if not hasattr(self, "_root_numbers"):
            self._root_numbers = set()
        return self._root_numbers

    def after_backward(self, call, roots, site, number, retain, create):
        for root in roots:
            if root.grad_fn is not None:
                self.root_numbers.add(root.grad_fn._sequence_nr())


class Reference(Observer):
    def __init__(self, wire, root, request):
        super().__init__(wire, root, request)
        self.cut_stale = request.get("cut_stale", True)
        self.wanted = {}
        for pair in request.get("pairs") or ():
            birth = (*pair["birth"],)
            self.wanted.setdefault(birth, set()).add((pair["site"], pair["call"], tuple(pair["operand"])))
        self._readings = Readings(
            (birth[0], birth[2], birth[3], *reading) for birth, readings in self.wanted.items() for reading in readings
        )
        self._makers = {(birth[0], birth[2], birth[3]) for birth in self.wanted}
        self.others = {}  # (point, path) of a probe -> how often tensors passed whose graph must live
        self.unread = {}  # birth of a tensor that is cut nowhere -> the (point, path) that it has passed
        self.at_end.append(lambda: wire.send("uncut", **self._readings.beside(self._pairs)))
        # kinds of readings to cut, whichever the tensor: (maker's site, distance, output, reading site, call, operand)
        self._dual = {(*kind[:5], tuple(kind[5])) for kind in self.interventions.get("kinds") or ()}
        # old tensors that are taken out of a list here: (maker's site, distance, output, reading site)
        self._drop = {tuple(kind) for kind in self.interventions.get("drop") or ()}
        self._dual_values = {kind[:3] for kind in self._dual}
        self._dual_values.update(tuple(value) for value in self.interventions.get("watch") or ())
        self._memo = {}
        self._memo_at = 0
        self._pairs = {}
        self._marks = {}  # id of a tensor -> Mark
        self.places = {}  # number -> (span, what is done there with the value)
        self._inside = {}  # (place, site) -> whether the place is a part of one of the site's calls
        self._live = {}  # sequence number -> whether something that is optimised lies below
        self._passed = {}  # birth of a watched tensor -> the places that it has passed
        self._consumed = set()  # (birth or id, place): a call read there what it was handed
        self._flows = set()
        self._now = ()
        self._random = set()  # sites that drew random numbers
        self.at_end.append(lambda: wire.send("random", sites=sorted(self._random)))
        self.at_end.append(lambda: wire.send("starts", readings=self._readings.started_with_data))
        self._fed = set()  # pairs whose tensor went on into an operation with a parameter
        self.at_end.append(lambda: wire.send("fed", pairs=sorted(self._fed)))
        self._silenced = set()  # pairs that make a whole term of a loss constant
        self.at_end.append(lambda: wire.send("silenced", pairs=sorted(self._silenced)))
        self._pending = {}  # leaf -> backwards whose gradient it holds, not yet used by a step
        self._lost = {}  # leaf -> backwards whose gradient it would hold, had nothing been cut
        self._leaves_of = {}  # pair -> the leaves below its operand
        everything, empty = bool(request.get("holders")), request.get("empty") or ()
        probing = request.get("probes") and (self.wanted or self._dual_values)
        self._holders = Holders(self, everything, empty) if probing or everything or empty else None

    # -- staleness ----------------------------------------------------------------------------------------------

    def state_of(self, tensor):
        node = tensor.grad_fn
        if node is None:
            return graph.ALIVE
        number = node._sequence_nr()
        if number >= self.last_event:
            return graph.ALIVE
        if self._memo_at != self.last_event:
            self._memo.clear()
            self._memo_at = self.last_event
        state = self._memo.get(number)
        if state is None:
            state = self._memo[number] = self._search(node)
        return state

    def _search(self, node):
        for each in graph.walk(node):
            state = graph.node_state(each)
            if state != graph.ALIVE:
                return state
            if each._sequence_nr() < self.last_retained and self.has_outdated_weights(each):
                # a backward that keeps its graph leaves no trace in it; the weights have moved on all the same
                return graph.OUTDATED
        return graph.ALIVE

    # -- cutting ------------------------------------------------------------------------------------------------

    def before_operation(self, func, name, site, occurrence, args, kwargs):
        self._now = []
        if name in READERS or not torch.is_grad_enabled() or not (self.last_event or self.wanted or self._dual):
            return args, kwargs
        in_place = writes_in_place(name)
        for i, arg in enumerate(args):
            if type(arg) in (list, tuple):
                self._readings.handed_over(site, i, len(arg))

        def operand(tensor, path):
            node = tensor.grad_fn
            if node is None:
                if site in self._readings.sites:
                    self._readings.start(tensor, site, name, path)
                return tensor
            birth = None
            wanted = False
            if self.wanted or site in self._readings.sites:
                birth = self.births.of(tensor)
            if self.wanted:
                wanted = birth in self.wanted and (site, name, path) in self.wanted[birth]
            if self._dual and not wanted:
                birth = self.births.of(tensor)
                wanted = birth is not None and (birth[0], birth[2], birth[3], site, name, path) in self._dual
                if wanted:
                    self.wanted.setdefault(birth, set()).add((site, name, path))
            state = self.state_of(tensor) if self.cut_stale or wanted else graph.ALIVE
            if not wanted and state == graph.ALIVE:
                for key in self.unread.pop(birth, ()):
                    self.others[key] = self.others.get(key, 0) + 1
                if birth in self.wanted and self._is_live(tensor):
                    self._flow(birth, site, name, path)
                if birth is not None:
                    number = node._sequence_nr()
                    kind = (birth[0], birth[2], birth[3], site, name, path)
                    self._readings.alive(kind, birth, self.backwards, self.made(number)[1], number >= self.last_event)
                return tensor
            if birth is None:
                birth = self.births.of(tensor)
            if birth is not None:
                kind, made = (birth[0], birth[2], birth[3], site, name, path), self.made(node._sequence_nr())[1]
                self._readings.cut(kind, birth, self.backwards, made, state != graph.ALIVE)
            self._now.append(
                (tensor, birth, path, state, wanted, in_place and path == (0,), node, self.mark_of(tensor))
            )
            if in_place and path == (0,):
                return self._cut_target(tensor)
            if self._drop and len(path) > 1 and birth and (birth[0], birth[2], birth[3], site) in self._drop:
                return DROPPED
            return _detached(tensor)

        args = tuple(replace(a, (i,), operand) for i, a in enumerate(args))
        kwargs = {k: replace(v, (k,), operand) for k, v in kwargs.items()}
        return args, kwargs

    @staticmethod
    def _cut_target(tensor):
        """A stale tensor about to be written in place is cut itself: its next readers see the writing alone."""
        try:
            return tensor.detach_()
        except RuntimeError:  # a view; the operation will write through the detached alias
            return _detached(tensor)

    @recorder_failure
    def after_operation(self, func, name, site, occurrence, args, kwargs, result, start, end):
        cut, self._now = self._now, ()
        if name in RANDOM:
            self._random.add(site)
        if not cut and not self._marks:
            return
        if name in READERS or not torch.is_grad_enabled():
            return
        if name != "__setitem__" and not has_float(result) and not any(item[5] for item in cut):
            return
        marks, live, parameter = {}, False, False
        for tensor in (*tensors(args), *tensors(kwargs)):
            mark = self.mark_of(tensor)
            if mark is not None and not any(tensor is item[0] for item in cut):
                through = self._through(mark.passed, site, id(tensor))
                _merge(marks, {pair: places | through for pair, places in mark.pairs.items()})
                live = live or mark.live
            elif tensor.requires_grad:
                live = live or self._is_live(tensor)
                parameter = parameter or (tensor.grad_fn is None and live)
        numbers = []
        for item in cut:
            number = self._pair(item, site, name)
            if number is not None:
                numbers.append(number)
                _merge(marks, {number: self._through(self._passed.get(item[1], ()), site, item[1])})
        if marks:
            if parameter:
                self._fed.update(marks)
            if name in ADDING:
                self._note_silenced(args, result, numbers)
            for tensor in args[:1] if name == "__setitem__" else tensors(result):
                if tensor.is_floating_point() or tensor.is_complex():
                    self._set_mark(tensor, marks, live)

    def _note_silenced(self, args, result, cut):
        """A loss is put together of terms: one that is a constant by the cut alone, beside one that teaches."""
        terms = list(tensors(args))
        if not isinstance(result, torch.Tensor) or not result.requires_grad or any(t.numel() != 1 for t in terms):
            return
        self._silenced.update(cut)
        for term in terms:
            mark = self.mark_of(term)
            if mark is not None and not term.requires_grad:
                self._silenced.update(mark.pairs)

    def _through(self, places, site, tensor, cut=True):
        """Of the places that a tensor has passed those that lead to this reading of it.

        What bound the tensor leads everywhere; what only read it, to the calls that it is a part of; what handed it
        to a call, too, and everywhere if that call did not read it but kept it. What is not ``cut`` tells nothing of
        what the call did with what is.
        """
        found = set()
        for place in places:
            use = self.places[place][1]
            inside = use != "binds" and self._is_inside(place, site)
            if inside and cut:
                self._consumed.add((tensor, place))
            if use == "binds" or inside or (use == "hands over" and (tensor, place) not in self._consumed):
                found.add(place)
        return frozenset(found)

    def _is_inside(self, place, site):
        key = (place, site)
        known = self._inside.get(key)
        if known is None:
            file, line, column, end_line, end_column = self.places[place][0]
            known = self._inside[key] = any(
                f == file and (ln, c) <= (line, column) and (end_line, end_column) <= (eln, ec)
                for f, ln, c, eln, ec, *_ in self.sites.chain_of(site)
            )
        return known

    def mark_of(self, tensor):
        mark = self._marks.get(id(tensor))
        return mark if mark is not None and mark.tensor() is tensor else None

    def _set_mark(self, tensor, marks, live):
        key = id(tensor)
        self._marks[key] = Mark(weakref.ref(tensor, lambda gone, key=key: self._forget(key, gone)), dict(marks), live)

    def _forget(self, key, reference):
        mark = self._marks.get(key)
        if mark is not None and mark.tensor is reference:
            del self._marks[key]

    def watches(self, birth):
        """Whether a tensor of this birth is cut somewhere."""
        return birth is not None and (birth in self.wanted or (birth[0], birth[2], birth[3]) in self._dual_values)

    def makes_watched(self, birth):
        """Whether a tensor of this birth has the same maker as one that is cut somewhere."""
        return birth is not None and (birth[0], birth[2], birth[3]) in self._makers and len(self.unread) < MOST_PAIRS

    def pass_place(self, tensor, birth, place):
        """A watched or marked tensor passes a place."""
        mark = self.mark_of(tensor)
        if mark is not None:
            mark.passed.add(place)
        if self.watches(birth):
            self._passed.setdefault(birth, set()).add(place)

    def _is_live(self, tensor):
        """Whether a module's parameter or something an optimizer holds lies below the tensor."""
        node = tensor.grad_fn
        if node is None:
            return isinstance(tensor, torch.nn.Parameter) or tensor._cdata in self.held_parameters()
        number = node._sequence_nr()
        if number not in self._live:
            if len(self._live) > 100_000:
                self._live.clear()
            held = None
            answer = False
            for leaf in graph.leaves_lazily(node):
                held = self.held_parameters() if held is None else held
                if isinstance(leaf, torch.nn.Parameter) or leaf._cdata in held:
                    answer = True
                    break
            self._live[number] = answer
        return self._live[number]

    def gradients(self, result, roots, site, create):
        if create and self._marks:
            marks = {}
            for root in roots:
                mark = self.mark_of(root)
                if mark is not None:
                    _merge(marks, mark.pairs)
            if marks:
                for tensor in tensors(result):
                    self._set_mark(tensor, marks, True)

    def _pair(self, item, site, name):
        tensor, birth, path, state, wanted, in_place, node, mark = item
        key = (birth, site, name, path)
        number = self._pairs.get(key)
        if number is not None or len(self._pairs) >= MOST_PAIRS:
            return number
        number = self._pairs[key] = len(self._pairs)
        fields = {}
        if node is not None:
            at = node._sequence_nr()
            held = self.held_parameters()
            below = graph.leaves(node, 50_000)[:1000]
            self._leaves_of[number] = [leaf._cdata for leaf in below]
            fields = {
                "made": self.made(at),
                "since": self.since(at),
                "read_before": self.births.first_seen.get(site, at) < at,
                "leaves": [self.describe_leaf(leaf, held) for leaf in below],
                "history": sorted(mark.pairs) if mark is not None else [],
                "past": self._past(node),
            }
        self.wire.send(
            "pair",
            id=number,
            birth=birth,
            site=site,
            call=name,
            operand=path,
            state=state if state != graph.ALIVE else "live",
            in_place=in_place,
            known=wanted,
            read=[self.steps, self.backwards],
            scalar=tensor.numel() == 1,
            shape=list(tensor.shape),
            **fields,
        )
        return number

    def _past(self, node):
        """The sites that made the operand's own graph, newest first; the first sixty."""
        sites = {}
        for each in graph.walk(node, limit=2000):
            made = self.births.range_of(each._sequence_nr())
            if made is not None:
                sites[made[0]] = max(made[2], sites.get(made[0], 0))
        return sorted(sites, key=sites.get, reverse=True)[:60]

    def _flow(self, birth, site, name, path):
        """A watched tensor read alive by another site: an edit upstream of both would cut too much."""
        key = (birth[0], site, name, path)
        if key not in self._flows:
            self._flows.add(key)
            places = self._through(self._passed.get(birth, ()), site, birth, cut=False)
            self.wire.send(
                "flow",
                birth=birth,
                site=site,
                call=name,
                operand=path,
                read=[self.steps, self.backwards],
                places=sorted(places),
            )

    # -- backward and steps -------------------------------------------------------------------------------------

    def before_backward(self, call, roots, site, number, retain, create):
        extra = {}
        self._roots(call, roots, site, number)
        return extra

    def after_backward(self, call, roots, site, number, retain, create):
        super().after_backward(call, roots, site, number, retain, create)
        if self._holders is not None and call == "backward":
            self._holders.search(number)

    @recorder_failure
    def _roots(self, call, roots, site, number):
        reached = {}
        with torch._C.DisableTorchFunction():
            for root in roots:
                mark = self.mark_of(root)
                if mark is not None:
                    _merge(reached, mark.pairs)
                node = root.grad_fn
                if node is None:
                    continue
                if self.state_of(root) != graph.ALIVE:
                    self.wire.send("root", backward=number, call=call, site=site, **self.describe_root(root))
                if call == "backward":
                    for leaf in graph.leaves(node):
                        self._pending.setdefault(leaf._cdata, set()).add(number)
        if call == "backward":
            for pair in reached:
                for leaf in self._leaves_of.get(pair, ()):
                    self._lost.setdefault(leaf, set()).add(number)
        if reached:
            pairs = {pair: sorted(places) for pair, places in reached.items()}
            self.wire.send("reached", backward=number, call=call, site=site, pairs=pairs)

    def on_step(self, optimizer, parameters):
        return {
            "uses": [sorted(self._pending.get(p._cdata, ())) for p in parameters],
            "lost": [sorted(self._lost.get(p._cdata, ())) for p in parameters],
        }

    @recorder_failure
    def zeroed(self, parameters):
        for p in parameters:
            self._pending.pop(p._cdata, None)
            self._lost.pop(p._cdata, None)


class Mark:
    """What was computed from cut operands: the pairs, with the places that every way from there has passed.

    ``live``: something that is optimised lies below it, too. ``passed``: places that this very tensor has passed.
    """

    __slots__ = ("live", "pairs", "passed", "tensor")

    def __init__(self, tensor, pairs, live):
        self.tensor, self.pairs, self.live, self.passed = tensor, pairs, live, set()


def _detached(tensor):
    """Detached, and of the same subclass, whose own code is not asked."""
    result = tensor.detach()
    return result if type(result) is type(tensor) else result.as_subclass(type(tensor))


def _merge(marks, more):
    """Two ways meet: of each pair's places only those that both ways passed remain."""
    for pair, places in more.items():
        known = marks.get(pair)
        marks[pair] = places if known is None else known & places
