"""What one run said, as typed records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from autodetach.model import Chain, Failure, FailureKind, Json, Span

Birth = tuple[str, int, int, int]
"""Site, occurrence of that site, distance from the end of the call's nodes, output: the same in every run."""

Number = float | str


@dataclass(frozen=True)
class Step:
    """One optimizer step: which optimizer, its parameters' fingerprints after it, gradient norms before it.

    Of a step long before the failure there may be no ``params``, and for each norm only None or 1, whether there was a
    gradient.
    """

    n: int
    optimizer: int
    params: tuple[tuple[Number, Number], ...]
    grads: tuple[Number | None, ...]
    backwards: int
    uses: tuple[frozenset[int], ...] = ()
    lost: tuple[frozenset[int], ...] = ()
    site: str = ""
    devices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Backward:
    n: int
    call: str
    site: str
    steps: int
    loss: tuple[Number, ...]
    retain: bool
    create: bool
    leaves: tuple[tuple[str, Number | None, tuple[Number, Number]], ...] = ()
    outdated: str | None = None
    """The site that made a part of the loss from weights which had been updated since; told where asked for."""
    devices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Leaf:
    """A tensor that gradients are accumulated into; ``holders`` are (number, place) of the optimizers that hold it."""

    number: int
    holders: tuple[tuple[int, int], ...]
    site: str | None
    anonymous: bool
    parameter: bool
    shape: tuple[int, ...]

    @property
    def optimizer(self) -> tuple[int, int] | None:
        """One of the holders."""
        return self.holders[0] if self.holders else None


@dataclass(frozen=True)
class Pair:
    """A tensor (its birth) and a reading site: what a reference run cuts."""

    id: int
    birth: Birth | None
    site: str
    call: str
    operand: tuple[int | str, ...]
    state: str
    in_place: bool
    made: tuple[int, int]
    read: tuple[int, int]
    since: tuple[tuple[str, int, bool], ...]
    leaves: tuple[Leaf, ...]
    history: frozenset[int]
    scalar: bool
    read_before: bool
    past: tuple[str, ...] = ()

    @property
    def key(self) -> Json:
        """As the agent wants it back."""
        return {"birth": self.birth, "site": self.site, "call": self.call, "operand": self.operand}

    @property
    def identity(self) -> tuple[Any, ...]:
        return (self.birth, self.site, self.call, self.operand)

    @property
    def value(self) -> tuple[str, int, int]:
        """The kind of tensor: everything that this maker makes, whenever."""
        assert self.birth is not None
        return (self.birth[0], self.birth[2], self.birth[3])

    @property
    def reading(self) -> tuple[Any, ...]:
        """The kind of pair: this maker's tensors read at this site."""
        return (*self.value, self.site, self.call, self.operand)

    @property
    def updated_between(self) -> bool:
        """Whether an optimizer step lies between the tensor's making and this reading."""
        return any(kind == "step" for kind, _, _ in self.since)


@dataclass(frozen=True)
class Place:
    """An expression and a path into its value, passed by tensors that are cut or computed from cut ones.

    ``watched``: the kinds of tensors, themselves cut somewhere, that were seen there.
    """

    id: int
    point: Span
    path: tuple[int | str, ...]
    structure: Any
    watched: frozenset[tuple[str, int, int]]


@dataclass(frozen=True)
class Holder:
    """Something that a statement can assign to and that holds what is cut, as seen from one frame.

    ``span`` is the call in that frame that led to the backward. ``methods``: (owner's path, method) of objects on the
    way to it that say that they detach. ``resets``: their methods that start afresh.
    """

    id: int
    span: Span
    function: str
    path: str
    is_global: bool
    structure: Any
    container: str
    is_parameter: bool
    methods: tuple[tuple[str, str], ...]
    resets: tuple[str, ...]


@dataclass(frozen=True)
class Flow:
    birth: Birth
    site: str
    call: str
    operand: tuple[int | str, ...]
    read: tuple[int, int]
    places: frozenset[int] = frozenset()
    """Those that it passed on the way to this reading."""

    @property
    def kind(self) -> tuple[Any, ...]:
        return (self.birth[0], self.birth[2], self.birth[3], self.site, self.call, self.operand)


@dataclass(frozen=True)
class Dead:
    state: str
    node: str
    site: str | None
    made: tuple[int, int]
    since: tuple[tuple[str, int, bool], ...]
    names: tuple[str, ...] = ()
    """The saved values that were changed since, e.g. ``self``, ``result``."""


@dataclass(frozen=True)
class Root:
    """What a failing (or stale) backward's root looked like."""

    again: bool
    made: tuple[int, int]
    since: tuple[tuple[str, int, bool], ...]
    dead: tuple[Dead, ...]
    states: Mapping[str, int]
    leaves: tuple[Leaf, ...]
    birth: Birth | None = None
    fed: bool = False
    """Whether what is dead below it feeds a model, not the loss alone; told rightly before the backward ran."""
    alone: bool = False
    """Whether nobody learns from it but through what is dead; told rightly before the backward ran."""


@dataclass(frozen=True)
class Shade:
    """An operation that lost the graph."""

    site: str
    call: str
    reason: str
    grad: bool
    inference: bool
    on_path: bool
    switch: str | None
    """The site that had switched grad mode off."""
    learner: str = ""
    """A parameter below it that an optimizer holds."""


@dataclass(frozen=True)
class Frozen:
    """Parameters that optimizers hold although they require no gradient.

    ``rows``: (optimizer, place, the site that froze it). ``leaves``: how many were frozen in all. ``made``: the sites
    where the optimizers were made.
    """

    rows: tuple[tuple[int, int, str], ...]
    leaves: int
    made: tuple[str, ...]


@dataclass(frozen=True)
class Leak:
    """A kind of tensor that piles up, or whose graph grows: at first and at last how many, and how many nodes."""

    kind: tuple[str, int, int]
    count: tuple[int, int]
    nodes: tuple[int, int]
    places: frozenset[int]
    """The places that all the kept ones have passed."""
    parents: tuple[tuple[tuple[str, int, int], frozenset[int]], ...]
    """The kinds that they are computed from, each with the places that all of those have passed."""


Reading = tuple[str, int]
"""A site, and the place of an operand among its tensors."""


@dataclass(frozen=True)
class Twin:
    """The nearest value that both an input and the output were computed from."""

    maker: str | None
    marked: bool
    read: Reading | None
    same: bool
    """Whether it has the input's elements."""


@dataclass(frozen=True)
class Input:
    """What a failing derivative was asked for; see ``agent/trace.py``."""

    index: int
    marked: bool
    used: bool
    maker: str | None
    call: str
    marked_at: str | None
    read: Reading | None
    cuts: tuple[str, ...]
    twin: Twin | None
    frames: tuple[tuple[Span, str, tuple[str, ...]], ...] = ()
    """The calls under way at the failure, innermost first, with the names that each function has for the input."""


@dataclass(frozen=True)
class Marked:
    """Where a run made an operand require gradients, with the names that each function of the user's had for it."""

    site: str
    place: int
    frames: tuple[tuple[Span, str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Mended:
    """An error that a run mended on the fly; see ``agent/mend.py``."""

    kind: FailureKind
    site: str
    call: str
    names: tuple[tuple[str, Any], ...]
    """Under which names the function at the site knows the tensor, each with the structure of its value."""
    made: str | None
    """The site that made the tensor."""
    value: tuple[str, int, int] | None = None
    """Its kind: everything that this maker makes, whenever."""
    places: frozenset[int] = frozenset()
    leaf: Leaf | None = None
    from_grad: bool = False
    graph: bool = False
    forward: bool = False
    fresh: bool = False
    early: bool = False
    """Before the first backward."""


@dataclass(frozen=True)
class Recording:
    sites: Mapping[str, Chain]
    steps: tuple[Step, ...] = ()
    backwards: tuple[Backward, ...] = ()
    pairs: tuple[Pair, ...] = ()
    reached: Mapping[int, Mapping[int, frozenset[int]]] = field(default_factory=dict)
    """Backward -> the pairs in its root's past -> the places that every way from there has passed."""
    flows: tuple[Flow, ...] = ()
    places: Mapping[int, Place] = field(default_factory=dict)
    others: Mapping[tuple[Span, tuple[int | str, ...]], int] = field(default_factory=dict)
    fed: frozenset[int] = frozenset()
    """Pairs whose tensor went on into an operation with a parameter: it feeds a model, not a loss alone."""
    starts: frozenset[tuple[str, str, tuple[int | str, ...]]] = frozenset()
    """Readings (site, call, operand), cut in later steps, that took data at first: no state is made of that."""
    silenced: frozenset[int] = frozenset()
    """Pairs that make a whole term of a loss constant."""
    random: frozenset[str] = frozenset()
    """Sites that drew random numbers."""
    apart: frozenset[tuple[Any, ...]] = frozenset()
    """Kinds of readings that take, between two backwards, either what is cut or what lives, never both."""
    drawn: frozenset[tuple[Any, ...]] = frozenset()
    """Kinds of readings that draw from a memory, fresh tensors or stale ones as chance has it."""
    collected: frozenset[tuple[Any, ...]] = frozenset()
    """Kinds of readings that take old tensors together with new ones that turn stale later."""
    holders: Mapping[int, Holder] = field(default_factory=dict)
    held: Mapping[int, frozenset[tuple[int, tuple[int | str, ...], Birth]]] = field(default_factory=dict)
    """Backward -> (holder, path into its structure, birth of the tensor) of what lay there after it."""
    stale_roots: tuple[Root, ...] = ()
    failure: Failure | None = None
    failure_call: str = ""
    failure_site: str = ""
    failure_roots: tuple[Root, ...] = ()
    failed_sites: tuple[str, ...] = ()
    """Where one of our errors came up, the ones that the program caught itself included."""
    mended: tuple[Mended, ...] = ()
    looked: frozenset[str] = frozenset()
    """Sites that made leaves whose gradients the program reads."""
    compared: Mapping[str, str] = field(default_factory=dict)
    """Site of a leaf whose own values are the target of what a model makes of it -> where a loss compares them."""
    still: frozenset[str] = frozenset()
    """Where the program updates by hand: the leaves that it had not updated when it failed, while it had others."""
    failure_values: tuple[Number, ...] = ()
    """What the failing backward was called on."""
    failure_shapes: tuple[tuple[int, ...], ...] = ()
    inputs: tuple[Input, ...] = ()
    """Of a derivative that failed, in a run that traces values."""
    marked: tuple[Marked, ...] = ()
    leaks: tuple[Leak, ...] = ()
    written: frozenset[str] = frozenset()
    """Sites that wrote in place into something with a graph; told by a run with copies."""
    frozen: Frozen | None = None
    shades: tuple[Shade, ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    updated: frozenset[str] = frozenset()
    """Without an optimizer: the leaves read with grad mode off that the program's own updates changed."""
    constants: frozenset[str] = frozenset()
    """Sites of first-order gradients that some backward's root was computed from."""
    live: tuple[tuple[int, int], ...] = ()
    """(step, autograd nodes alive after it)."""
    old: tuple[tuple[int, int], ...] = ()
    """(step, nodes alive after it that were made before the step of the failure)."""
    how: str = ""
    """``exit``, ``error``, ``stopped`` at the horizon; empty for a run that died."""
    death: str = ""
    """How it died, to be read after the program's name."""
    progress: int = 0
    traceback: str = ""
    notes: tuple[str, ...] = ()
    agent_errors: tuple[str, ...] = ()
    has_optimizer: bool = False
    process: str = ""
    """The name of the child process that this is of; empty for the program itself."""
    asked: str = ""
    """By what the program asked for CUDA where there is none; empty if it never did."""
    redirected: bool = False
    """Whether anything that was meant for CUDA was done on the CPU."""
    device_names: tuple[str, ...] = ()
    """The CUDA devices that held what was trained."""
    failure_devices: frozenset[str] = frozenset()
    """The kinds of devices of the tensors that took part in the failing call."""

    @property
    def devices(self) -> frozenset[str]:
        """The kinds of devices of the losses and of the parameters that were stepped."""
        stepped = {device for step in self.steps for device in step.devices}
        return frozenset(stepped.union(*(backward.devices for backward in self.backwards)))

    def chain(self, site: str | None) -> Chain:
        return self.sites.get(site or "", ())

    @property
    def relevant(self) -> frozenset[int]:
        """Pairs that a backward would have reached, through other pairs' own past included."""
        by_id = {p.id: p for p in self.pairs}
        todo = [i for ids in self.reached.values() for i in ids]
        found: set[int] = set()
        while todo:
            number = todo.pop()
            if number in by_id and number not in found:
                found.add(number)
                todo += by_id[number].history
        return frozenset(found)

    @property
    def direct(self) -> frozenset[int]:
        return frozenset(i for ids in self.reached.values() for i in ids)

    @cached_property
    def dominators(self) -> Mapping[int, frozenset[int]]:
        """Pair -> the places that every way to every backward has passed: an edit there would cut it."""
        found: dict[int, frozenset[int]] = {}
        for pairs in self.reached.values():
            for pair, places in pairs.items():
                found[pair] = places if pair not in found else found[pair] & places
        return found
