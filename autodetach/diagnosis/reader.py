"""Reads what a run said into a recording. Hostile or broken events are dropped, never believed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from autodetach.diagnosis import checked
from autodetach.diagnosis.recording import (
    Backward,
    Birth,
    Dead,
    Flow,
    Frozen,
    Holder,
    Input,
    Leaf,
    Leak,
    Marked,
    Mended,
    Number,
    Pair,
    Place,
    Reading,
    Recording,
    Root,
    Shade,
    Step,
    Twin,
)
from autodetach.model import Chain, Failure, FailureKind, Json, Span

_MARKED: dict[str, Number | None] = {"-": None, "+": 1.0}
"""Of steps that were not measured: whether there was a gradient."""


def _leaf(row: Json) -> Leaf:
    return Leaf(
        number=int(row["leaf"]),
        holders=tuple(checked.two(held) for held in row.get("holders") or ()),
        site=checked.word(row.get("site")),
        anonymous=bool(row.get("anonymous")),
        parameter=bool(row.get("parameter")),
        shape=tuple(int(size) for size in row.get("shape") or ()),
    )


def _root(row: Json) -> Root:
    return Root(
        again=bool(row.get("again")),
        made=checked.two(row["made"]),
        since=checked.since(row.get("since")),
        dead=tuple(
            Dead(
                str(d["state"]),
                str(d["node"]),
                checked.word(d.get("site")),
                checked.two(d["made"]),
                checked.since(d.get("since")),
                tuple(str(name) for name in d.get("names") or ()),
            )
            for d in row.get("dead") or ()
        ),
        states={str(state): int(count) for state, count in dict(row.get("states") or {}).items()},
        leaves=tuple(_leaf(leaf) for leaf in row.get("leaves") or ()),
        birth=checked.birth(row.get("birth")),
        fed=bool(row.get("fed")),
        alone=bool(row.get("alone")),
    )


def _reading(row: Any) -> Reading | None:
    return (str(row[0]), int(row[1])) if row else None


def _named(rows: Any) -> tuple[tuple[Span, str, tuple[str, ...]], ...]:
    return tuple((checked.span(at), str(function), tuple(checked.codes(names))) for at, function, names in rows)


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
        params=tuple(checked.fingerprint(p) for p in e["params"] or ()),
        grads=tuple(_MARKED[g] if isinstance(g, str) and g in _MARKED else checked.number(g) for g in e["grads"] or ()),
        backwards=int(e["backwards"]),
        uses=tuple(checked.ids(u) for u in e.get("uses") or ()),
        lost=tuple(checked.ids(u) for u in e.get("lost") or ()),
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
        loss=checked.numbers(e.get("loss") or ()),
        retain=bool(e["retain"]),
        create=bool(e["create"]),
        leaves=tuple((str(n), checked.number(g), checked.fingerprint(f)) for n, g, f in e.get("leaves") or ()),
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
                birth=checked.birth(e.get("birth")),
                site=str(e["site"]),
                call=str(e["call"]),
                operand=checked.path(e["operand"]),
                state=str(e["state"]),
                in_place=bool(e["in_place"]),
                made=checked.two(e.get("made") or (0, 0)),
                read=checked.two(e["read"]),
                since=checked.since(e.get("since")),
                leaves=tuple(_leaf(leaf) for leaf in e.get("leaves") or ()),
                history=checked.ids(e.get("history") or ()),
                scalar=bool(e.get("scalar")),
                read_before=bool(e.get("read_before")),
                past=tuple(str(s) for s in e.get("past") or ()),
            )
        )

    def _reached(self, e: Json, _: Any) -> None:
        self.reached[int(e["backward"])] = {int(i): checked.ids(places) for i, places in e["pairs"].items()}

    def _flow(self, e: Json, _: Any) -> None:
        birth = checked.birth(e["birth"])
        if birth is not None:
            places = checked.ids(e.get("places") or ())
            self.lists["flows"].append(
                Flow(birth, str(e["site"]), str(e["call"]), checked.path(e["operand"]), checked.two(e["read"]), places)
            )

    def _place(self, e: Json, _: Any) -> None:
        number = int(e["id"])
        watched = frozenset((str(s), int(d), int(o)) for s, d, o in e["watched"])
        self.places[number] = Place(
            number, checked.span(e["point"]), checked.path(e["path"]), checked.structure(e["structure"]), watched
        )

    def _others(self, e: Json, _: Any) -> None:
        self.others[checked.span(e["point"]), checked.path(e["path"])] = int(e["count"])

    def _holder(self, e: Json, _: Any) -> None:
        number = int(e["id"])
        self.holders[number] = Holder(
            number,
            checked.span(e["frame"]),
            str(e["function"]),
            checked.code(e["path"]),
            e["scope"] == "global",
            checked.structure(e["structure"]),
            str(e["container"]),
            bool(e["parameter"]),
            tuple((checked.code(owner), checked.identifier(method)) for owner, method in e["methods"]),
            tuple(checked.identifier(name) for name in e["resets"]),
        )

    def _held(self, e: Json, _: Any) -> None:
        rows = ((int(holder), checked.path(path), checked.birth(birth)) for holder, path, birth in e["rows"])
        self.held[int(e["backward"])] = frozenset((h, p, b) for h, p, b in rows if b is not None)

    def _random(self, e: Json, _: Any) -> None:
        self.fields["random"] = frozenset(str(s) for s in e["sites"])

    def _uncut(self, e: Json, _: Any) -> None:
        for name in ("apart", "drawn", "collected"):
            self.fields[name] = frozenset(
                (str(s), int(d), int(o), str(r), str(c), checked.path(p)) for s, d, o, r, c, p in e[name]
            )

    def _fed(self, e: Json, _: Any) -> None:
        self.fields["fed"] = checked.ids(e["pairs"])

    def _starts(self, e: Json, _: Any) -> None:
        self.fields["starts"] = frozenset(
            (str(site), str(call), checked.path(path)) for site, call, path in e["readings"]
        )

    def _silenced(self, e: Json, _: Any) -> None:
        self.fields["silenced"] = checked.ids(e["pairs"])

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
        self.fields["failure_values"] = checked.numbers(e.get("values") or ())
        self.fields["failure_shapes"] = tuple(tuple(int(n) for n in shape) for shape in e.get("shapes") or ())
        self.fields["inputs"] = tuple(_input(row) for row in e.get("inputs") or ())
        self.fields["failure_roots"] = tuple(_root(r) for r in e.get("roots") or ())

    def _shadow(self, e: Json, _: Any) -> None:
        self.fields["shades"] = tuple(
            Shade(str(s), str(c), str(r), bool(g), bool(i), bool(p), checked.word(w), str(x))
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
        self.lists["leaks"].append(Leak(kind, checked.two(e["count"]), checked.two(e["nodes"]), places, parents))

    def _marked(self, e: Json, _: Any) -> None:
        self.lists["marked"].append(Marked(str(e["site"]), int(e["place"]), _named(e["frames"])))

    def _frozen(self, e: Json, _: Any) -> None:
        rows = tuple((int(optimizer), int(place), str(site)) for optimizer, place, site in e["rows"])
        made = tuple(str(site) for site in e["made"])
        known = tuple(row for row in rows if 0 <= row[0] < len(made))
        if known:
            self.fields["frozen"] = Frozen(known, int(e["leaves"]), made)

    def _mended(self, e: Json, _: Any) -> None:
        leaf, birth = e.get("leaf"), checked.birth(e.get("birth"))
        self.lists["mended"].append(
            Mended(
                kind=FailureKind(e["kind"]),
                site=str(e["site"]),
                call=str(e["call"]),
                names=tuple(
                    (code, checked.structure(structure))
                    for name, structure in e["names"]
                    for code in checked.codes([name])
                ),
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
                sites[str(event["site"])] = checked.chain(event["chain"])
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
