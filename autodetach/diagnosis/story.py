"""The evidence in sentences: which backward failed, through which value, made where, carried how."""

from __future__ import annotations

from autodetach.diagnosis.findings import Findings
from autodetach.diagnosis.recording import Pair
from autodetach.model import Chain, Diagnosis, Evidence, Span
from autodetach.source.expression import Role

MOST = 4


def tell(findings: Findings, ways_out: tuple[str, ...] = ()) -> Diagnosis:
    """A diagnosis whose evidence runs from the failing backward to what carried the stale graph."""
    failure = findings.failure
    evidence = [failing(findings)]
    for pairs in list(findings.readings.values())[:MOST]:
        evidence += _stale(findings, pairs)
    return Diagnosis(findings.cause, failure, tuple(dict.fromkeys(evidence)), ways_out)


def place(chain: Chain) -> Span | None:
    """The innermost call of a chain that stands in the user's own files, else the innermost at all."""
    own = next((f.span for f in chain if f.editable), None)
    return own or (chain[0].span if chain else None)


def failing(findings: Findings) -> Evidence:
    failure = findings.failure
    call = "autograd.grad" if findings.observed.failure_call == "grad" else "backward"
    where = place(failure.chain)
    return Evidence(f"step {failure.steps + 1}: this {call} fails", where)


def _stale(findings: Findings, pairs: tuple[Pair, ...]) -> list[Evidence]:
    first = pairs[0]
    made = place(findings.chain(first.birth[0] if first.birth else None))
    read = _operand(findings, first) or place(findings.chain(first.site))
    name = _carrier(findings, first)
    gone = {"freed": "freed by an earlier backward", "outdated": "outdated: what it saved has changed since"}
    told = []
    if made is not None:
        told.append(Evidence(f"{name} was made here in step {first.made[0] + 1}, with its graph", made))
    stored = _store(findings, first)
    if stored is not None and stored != made:
        told.append(Evidence("it is kept here", stored))
    held = _held(findings, pairs)
    if held is not None:
        told.append(held)
    if read is not None:
        state = gone.get(first.state, "not meant to be followed")
        told.append(Evidence(f"{name} is read here in step {first.read[0] + 1}; its graph is {state}", read))
    return told


def _carrier(findings: Findings, pair: Pair) -> str:
    """The name under which the tensor was read, or what it is otherwise."""
    passed = [p for p in findings.passed_by(pair) if not p.derived]
    for point in passed:
        if point.expression.is_name_like:
            inside = any(f.span.contains(point.span) for f in findings.chain(pair.site))
            if inside:
                return f"`{point.expression.code}`"
    for point in passed:
        if point.expression.role is Role.STORE and point.expression.targets:
            return f"`{point.expression.targets[0]}`"
        if point.expression.is_name_like:
            return f"`{point.expression.code}`"
    return "a tensor"


def _operand(findings: Findings, pair: Pair) -> Span | None:
    """The operand itself, as the reading call names it."""
    inside = [
        p.span
        for p in findings.passed_by(pair)
        if not p.derived and any(f.editable and f.span.contains(p.span) for f in findings.chain(pair.site)[:1])
    ]
    return inside[-1] if inside else None


def _store(findings: Findings, pair: Pair) -> Span | None:
    """The statement that keeps it: into an attribute or an entry, which outlive the call, before a variable."""
    stores = [p.expression for p in findings.passed_by(pair) if p.expression.role is Role.STORE]
    lasting = [e for e in stores if any("." in t or "[" in t for t in e.targets)]
    return next((e.statement.span for e in (*lasting, *stores)), None)


def _held(findings: Findings, pairs: tuple[Pair, ...]) -> Evidence | None:
    """By which name the training loop can reach it when a step ends, where it lies in an object."""
    for holder in findings.reference.holders.values():
        inside = "." in holder.path or "[" in holder.path
        if inside and pairs[0].reading in findings.held_at([holder])[0]:
            return Evidence(f"when a step ends it lies in `{holder.path}`", holder.span)
    return None
