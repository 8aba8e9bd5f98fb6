"""Which readings an edit at a place would cut, told from what passed there."""

from __future__ import annotations

from typing import Any

from autodetach.diagnosis.findings import Findings, Point
from autodetach.model import Chain
from autodetach.source.expression import Expression, Role

OVERCUTS = 10
"""Added to the preference of an edit that is predicted to cut what must stay: it is tried last."""

BINDING = (Role.STORE, Role.RETURN, Role.YIELD, Role.ARGUMENT, Role.ITEM)


def within(chain: Chain, point: Point) -> bool:
    """Whether the point is a part of one of the calls that a site consists of."""
    return any(frame.span.contains(point.span) for frame in chain)


def binds(expression: Expression) -> bool:
    role = expression.role
    if role is Role.ITEM:
        parent = expression.parent
        return parent is not None and binds(parent)
    return role in BINDING


def overcuts(findings: Findings, point: Point) -> bool:
    """Whether an edit here is predicted to cut what the reference leaves alive."""
    if point.expression.role is Role.STORE and point.expression.is_name_like:
        return False  # a second name is bound; what goes on under the first is not touched
    if any(flow.places & set(point.places.values()) for flow in findings.reference.flows):
        return True
    if any(point.others.get(path) for path in point.places):
        return True
    flows = [f for f in findings.reference.flows if (f.birth[0], f.birth[2], f.birth[3]) in point.values]
    readings = findings.cut_at(point)
    if readings and all(within(findings.chain(reading[3]), point) for reading in readings):
        # part of the reading calls alone: what the value is elsewhere does not matter
        return any(within(findings.chain(flow.site), point) for flow in flows)
    return binds(point.expression) and bool(flows)


def structure_at(point: Point) -> Any:
    """The value's structure with only those parts marked as tensors that have to be cut."""
    return marked(point.structure, set(point.places))


def marked(structure: Any, wanted: set[tuple[int | str, ...]], path: tuple[int | str, ...] = ()) -> Any:
    """The structure with only those parts marked as tensors that lie at the ``wanted`` paths."""
    if structure == "tensor":
        return "tensor" if path in wanted else "other"
    if isinstance(structure, str):
        return structure
    kind = structure[0]
    if kind in ("tuple", "list"):
        parts = [marked(s, wanted, (*path, i)) for i, s in enumerate(structure[1])]
        return [kind, _alike(parts)]
    if kind == "dict":
        return [kind, {k: marked(s, wanted, (*path, k)) for k, s in structure[1].items()}]
    fields = [[name, marked(s, wanted, (*path, i))] for i, (name, s) in enumerate(structure[2])]
    return [kind, structure[1], fields]


def _alike(parts: list[Any]) -> list[Any]:
    """Of a long list of tensors some may have passed only later: a list is detached as a whole."""
    kinds = {repr(p) for p in parts}
    if len(parts) > 3 and kinds == {repr("tensor"), repr("other")}:
        return ["tensor" for _ in parts]
    return parts
