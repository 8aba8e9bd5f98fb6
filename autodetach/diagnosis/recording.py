"""What one run said, as typed records. Hostile or broken events are dropped, never believed."""

from __future__ import annotations

import ast
import keyword
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from autodetach.model import Chain, Failure, FailureKind, Frame, Json, Span

Birth = tuple[str, int, int, int]
"""Site, occurrence of that site, distance from the end of the call's nodes, output: the same in every run."""

Number = float | str
_LONGEST_PATH = 500
_MARKED: dict[str, Number | None] = {"-": None, "+": 1.0}
"""Of steps that were not measured: whether there was a gradient."""


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


def _span(values: Any) -> Span:
    file, line, column, end_line, end_column = values
    return Span(str(file), int(line), int(column), int(end_line), int(end_column))


def _chain(rows: Any) -> Chain:
    return tuple(Frame(_span(row[:5]), str(row[5]), bool(row[6])) for row in rows)


def _word(value: Any) -> str | None:
    return None if value is None else str(value)


def _ids(values: Any) -> frozenset[int]:
    return frozenset(int(value) for value in values)


def _two(values: Any) -> tuple[int, int]:
    return int(values[0]), int(values[1])


def _number(value: Any) -> Number | None:
    """A measurement: a float, or the word for one that JSON cannot carry."""
    if value is None:
        return None
    return value[:20] if isinstance(value, str) else float(value)


def _numbers(values: Any) -> tuple[Number, ...]:
    found = [_number(value) for value in values]
    return tuple(value for value in found if value is not None)


def _print(values: Any) -> tuple[Number, Number]:
    """A fingerprint: norm and projection."""
    norm, projection = _numbers(values[:2])
    return norm, projection


def _path(values: Any) -> tuple[int | str, ...]:
    """The way into a value or among the operands of a call."""
    if not isinstance(values, list) or not all(isinstance(step, int | str) for step in values):
        raise TypeError("no path")
    return tuple(values)


def _structure(value: Any, depth: int = 8) -> Any:
    """A value's shape, as ``agent/probes.py`` tells it. Raises TypeError or ValueError for what it never tells."""
    match value:
        case "tensor" | "other":
            return value
        case ["tuple" | "list" as kind, list(parts)] if depth:
            return [kind, [_structure(part, depth - 1) for part in parts]]
        case ["dict", dict(parts)] if depth:
            return ["dict", {str(name): _structure(part, depth - 1) for name, part in parts.items()}]
        case ["namedtuple", str(name), list(fields)] if depth:
            named = [[_identifier(field), _structure(part, depth - 1)] for field, part in fields]
            return ["namedtuple", _identifier(name), named]
    raise TypeError("no structure")


def _identifier(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise TypeError("no identifier")
    return name


def _code(path: Any) -> str:
    """The code of a variable, or of attributes and entries below it, which patches take over as it is.

    Raises TypeError or ValueError (a SyntaxError is none) for anything else.
    """
    if not isinstance(path, str) or len(path) > _LONGEST_PATH:
        raise TypeError("no path")
    try:
        node: ast.AST = ast.parse(path, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError("no path") from error
    while isinstance(node, ast.Attribute | ast.Subscript):
        index = node.slice if isinstance(node, ast.Subscript) else None
        if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
            index = index.operand
        if index is not None and not isinstance(index, ast.Constant):
            raise TypeError("no path")
        node = node.value
    if not isinstance(node, ast.Name) or "\n" in path or "#" in path:
        raise TypeError("no path")
    return path


def _since(rows: Any) -> tuple[tuple[str, int, bool], ...]:
    return tuple((str(k), int(n), bool(kept)) for k, n, kept in rows or ())


def _birth(row: Any) -> Birth | None:
    return (str(row[0]), int(row[1]), int(row[2]), int(row[3])) if row else None


def _leaf(row: Json) -> Leaf:
    return Leaf(
        number=int(row["leaf"]),
        holders=tuple(_two(held) for held in row.get("holders") or ()),
        site=_word(row.get("site")),
        anonymous=bool(row.get("anonymous")),
        parameter=bool(row.get("parameter")),
        shape=tuple(int(size) for size in row.get("shape") or ()),
    )


def _root(row: Json) -> Root:
    return Root(
        again=bool(row.get("again")),
        made=_two(row["made"]),
        since=_since(row.get("since")),
        dead=tuple(
            Dead(
                str(d["state"]),
                str(d["node"]),
                _word(d.get("site")),
                _two(d["made"]),
                _since(d.get("since")),
                tuple(str(name) for name in d.get("names") or ()),
            )
            for d in row.get("dead") or ()
        ),
        states={str(state): int(count) for state, count in dict(row.get("states") or {}).items()},
        leaves=tuple(_leaf(leaf) for leaf in row.get("leaves") or ()),
        birth=_birth(row.get("birth")),
        fed=bool(row.get("fed")),
        alone=bool(row.get("alone")),
    )


def _reading(row: Any) -> Reading | None:
    return (str(row[0]), int(row[1])) if row else None


def _named(rows: Any) -> tuple[tuple[Span, str, tuple[str, ...]], ...]:
    return tuple((_span(at), str(function), tuple(_codes(names))) for at, function, names in rows)


def _codes(names: Any) -> Iterable[str]:
    """Those names that a patch may take over."""
    for name in names:
        try:
            yield _code(name)
        except (TypeError, ValueError):
            continue


def _input(row: Json) -> Input:
    twin = row.get("twin")
    return Input(
        index=int(row["index"]),
        marked=bool(row["marked"]),
        used=bool(row["used"]),
        maker=row.get("maker"),
        call=str(row.get("call") or ""),
        marked_at=row.get("marked_at"),
        read=_reading(row.get("read")),
        cuts=tuple(str(site) for site in row.get("cuts") or ()),
        twin=Twin(twin.get("maker"), bool(twin["marked"]), _reading(twin.get("read")), bool(twin["same"]))
        if twin
        else None,
        frames=_named(row.get("frames") or ()),
    )


def step_of(e: Json) -> Step:
    """The step that an event tells of. Raises KeyError, ValueError, TypeError for what is none."""
    return Step(
        n=int(e["n"]),
        optimizer=int(e["optimizer"]),
        params=tuple(_print(p) for p in e["params"] or ()),
        grads=tuple(_MARKED[g] if isinstance(g, str) and g in _MARKED else _number(g) for g in e["grads"] or ()),
        backwards=int(e["backwards"]),
        uses=tuple(_ids(u) for u in e.get("uses") or ()),
        lost=tuple(_ids(u) for u in e.get("lost") or ()),
        site=str(e.get("site") or ""),
        devices=tuple(str(d) for d in e.get("devices") or ()),
    )


def backward_of(e: Json) -> Backward:
    """The backward that an event tells of. Raises as :func:`step_of`."""
    return Backward(
        n=int(e["n"]),
        call=str(e["call"]),
        site=str(e["site"]),
        steps=int(e["steps"]),
        loss=_numbers(e.get("loss") or ()),
        retain=bool(e["retain"]),
        create=bool(e["create"]),
        leaves=tuple((str(n), _number(g), _print(f)) for n, g, f in e.get("leaves") or ()),
        outdated=str(e["outdated"]) if e.get("outdated") is not None else None,
        devices=tuple(str(d) for d in e.get("devices") or ()),
    )


class _Reader:
    """Collects one process's events."""

    def __init__(self) -> None:
        self.lists: dict[str, list[Any]] = defaultdict(list)
        self.reached: dict[int, dict[int, frozenset[int]]] = {}
        self.places: dict[int, Place] = {}
        self.others: dict[tuple[Span, tuple[int | str, ...]], int] = {}
        self.holders: dict[int, Holder] = {}
        self.held: dict[int, frozenset[tuple[int, tuple[int | str, ...], Birth]]] = {}
        self.fields: dict[str, Any] = {}

    def take(self, e: Json, sites: Mapping[str, Chain]) -> None:
        kind = e["event"]
        method = getattr(self, f"_{kind.replace('-', '_')}", None)
        if method is not None:
            method(e, sites)

    def _hello(self, e: Json, _: Any) -> None:
        self.fields["process"] = str(e.get("name") or "")

    def _step(self, e: Json, _: Any) -> None:
        self.lists["steps"].append(step_of(e))

    def _backward(self, e: Json, _: Any) -> None:
        self.lists["backwards"].append(backward_of(e))

    def _pair(self, e: Json, _: Any) -> None:
        self.lists["pairs"].append(
            Pair(
                id=int(e["id"]),
                birth=_birth(e.get("birth")),
                site=str(e["site"]),
                call=str(e["call"]),
                operand=_path(e["operand"]),
                state=str(e["state"]),
                in_place=bool(e["in_place"]),
                made=_two(e.get("made") or (0, 0)),
                read=_two(e["read"]),
                since=_since(e.get("since")),
                leaves=tuple(_leaf(leaf) for leaf in e.get("leaves") or ()),
                history=_ids(e.get("history") or ()),
                scalar=bool(e.get("scalar")),
                read_before=bool(e.get("read_before")),
                past=tuple(str(s) for s in e.get("past") or ()),
            )
        )

    def _reached(self, e: Json, _: Any) -> None:
        self.reached[int(e["backward"])] = {int(i): _ids(places) for i, places in e["pairs"].items()}

    def _flow(self, e: Json, _: Any) -> None:
        birth = _birth(e["birth"])
        if birth is not None:
            places = _ids(e.get("places") or ())
            self.lists["flows"].append(
                Flow(birth, str(e["site"]), str(e["call"]), _path(e["operand"]), _two(e["read"]), places)
            )

    def _place(self, e: Json, _: Any) -> None:
        number = int(e["id"])
        watched = frozenset((str(s), int(d), int(o)) for s, d, o in e["watched"])
        self.places[number] = Place(number, _span(e["point"]), _path(e["path"]), _structure(e["structure"]), watched)

    def _others(self, e: Json, _: Any) -> None:
        self.others[_span(e["point"]), _path(e["path"])] = int(e["count"])

    def _holder(self, e: Json, _: Any) -> None:
        number = int(e["id"])
        self.holders[number] = Holder(
            number,
            _span(e["frame"]),
            str(e["function"]),
            _code(e["path"]),
            e["scope"] == "global",
            _structure(e["structure"]),
            str(e["container"]),
            bool(e["parameter"]),
            tuple((_code(owner), _identifier(method)) for owner, method in e["methods"]),
            tuple(_identifier(name) for name in e["resets"]),
        )

    def _held(self, e: Json, _: Any) -> None:
        rows = ((int(holder), _path(path), _birth(birth)) for holder, path, birth in e["rows"])
        self.held[int(e["backward"])] = frozenset((h, p, b) for h, p, b in rows if b is not None)

    def _random(self, e: Json, _: Any) -> None:
        self.fields["random"] = frozenset(str(s) for s in e["sites"])

    def _uncut(self, e: Json, _: Any) -> None:
        for name in ("apart", "drawn", "collected"):
            self.fields[name] = frozenset(
                (str(s), int(d), int(o), str(r), str(c), _path(p)) for s, d, o, r, c, p in e[name]
            )

    def _fed(self, e: Json, _: Any) -> None:
        self.fields["fed"] = _ids(e["pairs"])

    def _starts(self, e: Json, _: Any) -> None:
        self.fields["starts"] = frozenset((str(site), str(call), _path(path)) for site, call, path in e["readings"])

    def _silenced(self, e: Json, _: Any) -> None:
        self.fields["silenced"] = _ids(e["pairs"])

    def _root(self, e: Json, _: Any) -> None:
        self.lists["stale_roots"].append(_root(e))

    def _failure(self, e: Json, sites: Mapping[str, Chain]) -> None:
        self.fields["failure"] = Failure(
            kind=FailureKind(e["kind"]),
            message=str(e["message"]),
            chain=sites.get(e["site"], ()),
            steps=int(e["steps"]),
            backwards=int(e["backwards"]),
        )
        self.lists["failed_sites"].append(str(e["site"]))
        self.fields["failure_call"] = str(e["call"])
        self.fields["failure_site"] = str(e["site"])
        self.fields["failure_devices"] = frozenset(str(d) for d in e.get("devices") or ())
        self.fields["still"] = frozenset(str(name) for name in e.get("still") or ())
        self.fields["failure_values"] = _numbers(e.get("values") or ())
        self.fields["failure_shapes"] = tuple(tuple(int(n) for n in shape) for shape in e.get("shapes") or ())
        self.fields["inputs"] = tuple(_input(row) for row in e.get("inputs") or ())
        self.fields["failure_roots"] = tuple(_root(r) for r in e.get("roots") or ())

    def _shadow(self, e: Json, _: Any) -> None:
        self.fields["shades"] = tuple(
            Shade(str(s), str(c), str(r), bool(g), bool(i), bool(p), _word(w), str(x))
            for s, c, r, g, i, p, w, x in e["nodes"]
        )
        self.fields["left"] = tuple((str(s), str(c)) for s, c in e.get("left") or ())

    def _updated(self, e: Json, _: Any) -> None:
        self.fields["updated"] = frozenset(str(name) for name in e["leaves"])

    def _written(self, e: Json, _: Any) -> None:
        self.fields["written"] = frozenset(str(s) for s in e["sites"])

    def _leak(self, e: Json, _: Any) -> None:
        parents = tuple(
            ((str(site), int(at), int(output)), frozenset(int(i) for i in places))
            for site, at, output, places in e["parents"]
        )
        site, at, output = e["kind"]
        kind = (str(site), int(at), int(output))
        places = frozenset(int(i) for i in e["places"])
        self.lists["leaks"].append(Leak(kind, _two(e["count"]), _two(e["nodes"]), places, parents))

    def _marked(self, e: Json, _: Any) -> None:
        self.lists["marked"].append(Marked(str(e["site"]), int(e["place"]), _named(e["frames"])))

    def _frozen(self, e: Json, _: Any) -> None:
        rows = tuple((int(optimizer), int(place), str(site)) for optimizer, place, site in e["rows"])
        made = tuple(str(site) for site in e["made"])
        known = tuple(row for row in rows if 0 <= row[0] < len(made))
        if known:
            self.fields["frozen"] = Frozen(known, int(e["leaves"]), made)

    def _mended(self, e: Json, _: Any) -> None:
        leaf, birth = e.get("leaf"), _birth(e.get("birth"))
        self.lists["mended"].append(
            Mended(
                kind=FailureKind(e["kind"]),
                site=str(e["site"]),
                call=str(e["call"]),
                names=tuple((code, _structure(structure)) for name, structure in e["names"] for code in _codes([name])),
                made=str(e["made"]) if e.get("made") else None,
                value=(birth[0], birth[2], birth[3]) if birth else None,
                places=frozenset(int(i) for i in e.get("places") or ()),
                leaf=_leaf(leaf) if leaf else None,
                **{name: bool(e.get(name)) for name in ("from_grad", "graph", "forward", "fresh", "early")},
            )
        )

    def _looked(self, e: Json, _: Any) -> None:
        self.fields["looked"] = frozenset(str(s) for s in e["sites"])

    def _compared(self, e: Json, _: Any) -> None:
        compared = self.fields.setdefault("compared", {})
        compared.update({str(leaf): str(e["site"]) for leaf in e["leaves"] if str(leaf) not in compared})

    def _constants(self, e: Json, _: Any) -> None:
        self.fields["constants"] = self.fields.get("constants", frozenset()) | {str(s) for s in e["sites"]}

    def _live(self, e: Json, _: Any) -> None:
        self.lists["live"].append((int(e["n"]), int(e["nodes"])))
        self.lists["old"].append((int(e["n"]), int(e["old"])))

    def _asked(self, e: Json, _: Any) -> None:
        self.fields["asked"] = str(e["what"])[:200]

    def _redirected(self, e: Json, _: Any) -> None:
        self.fields["redirected"] = True

    def _device(self, e: Json, _: Any) -> None:
        self.lists["device_names"].append(str(e["name"])[:200])

    def _note(self, e: Json, _: Any) -> None:
        if "caught the error itself" in str(e["text"]):
            self.fields.pop("failure", None)
        self.lists["notes"].append(str(e["text"])[:500])

    def _agent_error(self, e: Json, _: Any) -> None:
        self.lists["agent_errors"].append(str(e["text"])[:2000])

    def _end(self, e: Json, _: Any) -> None:
        self.fields["how"] = str(e["how"])
        self.fields["progress"] = int(e["steps"])
        self.fields["traceback"] = str(e["traceback"])

    @property
    def weight(self) -> tuple[bool, int]:
        return "failure" in self.fields, len(self.lists["backwards"]) + len(self.lists["steps"])

    def recording(self, sites: Mapping[str, Chain]) -> Recording:
        lists = {name: tuple(values) for name, values in self.lists.items()}
        fields = dict(self.fields)
        steps = lists.get("steps", ())
        fields.setdefault("progress", len(steps) or len(lists.get("backwards", ())))
        values: dict[str, Any] = {**lists, **fields}
        return Recording(
            sites=sites,
            reached=self.reached,
            others=self.others,
            places=self.places,
            holders=self.holders,
            held=self.held,
            has_optimizer=bool(steps),
            **values,
        )


def read(events: Iterable[Json], process: str = "") -> Recording:
    """The recording of the process of that name, else of the one that trains (or failed), be it a child."""
    sites: dict[str, Chain] = {}
    readers: dict[int, _Reader] = {}
    for event in events:
        try:
            if event["event"] == "site":
                sites[str(event["site"])] = _chain(event["chain"])
            else:
                reader = readers.setdefault(int(event.get("process", 0)), _Reader())
                reader.take(event, sites)
        except (KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError):
            continue
    if not readers:
        return Recording(sites={})
    named = [r for r in readers.values() if process and r.fields.get("process") == process]
    chosen = max(named or readers.values(), key=lambda r: r.weight)
    for name in ("asked", "redirected"):  # told by the first process that did, which may not be the one that trains
        said = [reader.fields[name] for reader in readers.values() if name in reader.fields]
        chosen.fields.update({name: said[0]} if said else {})
    return chosen.recording(sites)
