"""From a failure to its diagnosis, the candidates worth trying, and what they are held to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from autodetach.diagnosis import derivative, leaf_in_place, numpy_on_grad, shared, truncation
from autodetach.diagnosis.findings import Findings
from autodetach.diagnosis.lost_graph import graph_was_lost
from autodetach.diagnosis.plan import Inquiry, Plan
from autodetach.diagnosis.recording import Recording
from autodetach.diagnosis.siblings import explained
from autodetach.diagnosis.story import tell
from autodetach.laboratory import Laboratory
from autodetach.model import Candidate, Cause, FailureKind, Level
from autodetach.repairs import CUT_REPAIRS
from autodetach.repairs.cover import covers
from autodetach.repairs.drop_cache import DropCache
from autodetach.repairs.empty_container import EmptyContainer
from autodetach.repairs.move_into_loop import MoveIntoLoop
from autodetach.settings import Settings
from autodetach.source.book import SourceBook
from autodetach.verification.criteria import spread
from autodetach.verification.judge import Standard

FEW = 4
ONCE_OR_EVERY_STEP = (
    "if its value should follow the parameters it is computed from, compute it anew in every step, inside the loop",
    "if it is meant to stay what it was at the start (a target, say), detach it where it is made",
)
LEARNED_OR_FIXED = (
    "if the tensor is meant to be learned: make the tensor that is used the leaf (compute its start value first, then "
    "call requires_grad_() on it or make it an nn.Parameter) and give it to the optimizer",
    "if it is meant to stay fixed: create it without requires_grad=True; the model then trains around it",
)


def carried_or_afresh(resets: tuple[str, ...], where: str) -> tuple[str, ...]:
    calls = " or ".join(f"{name}()" for name in resets)
    return (
        f"if every batch should start afresh, call {calls} before its forward pass",
        f"if the state should be carried on from one batch to the next, detach it between them, {where}",
    )


def inquire(laboratory: Laboratory, observed: Recording, book: SourceBook, settings: Settings) -> Inquiry:
    failure = observed.failure
    assert failure is not None
    if failure.kind in (FailureKind.SECOND_BACKWARD, FailureKind.IN_PLACE):
        return _graph_is_gone(laboratory, observed, book, settings)
    if failure.kind is FailureKind.UNUSED_INPUT or observed.failure_call == "grad":
        found = derivative.inquire(laboratory, observed, book, settings)
        if found is not None:
            return found
    if failure.kind is FailureKind.NO_GRAD_FN:
        return graph_was_lost(laboratory, observed, book, settings)
    if failure.kind is FailureKind.NUMPY_ON_GRAD:
        return numpy_on_grad.inquire(laboratory, observed, book, settings)
    if failure.kind is FailureKind.LEAF_IN_PLACE:
        return leaf_in_place.inquire(laboratory, observed, book, settings)
    return explained(observed, book)


def _graph_is_gone(laboratory: Laboratory, observed: Recording, book: SourceBook, settings: Settings) -> Inquiry:
    """Truncation is tried first; who starves by it shows that another remedy is meant."""
    failure = observed.failure
    assert failure is not None
    found = truncation.investigate(laboratory, observed, book, settings)
    findings = found.findings
    measured = spread(observed, found.discovered, found.uncut_steps)
    starved = truncation.starved(findings)
    if found.failed and not truncation.loses_graph(found.replayed):
        return shared.investigate(laboratory, findings, settings, measured)
    calls = shared.freed_by_grad(findings)
    if calls:
        return shared.first_order(laboratory, findings, settings, measured, calls)
    shares = shared.read_again_in_one_step(findings, found.discovered)
    displaced = bool(shares) and truncation.displaced(findings)
    if starved or displaced:
        dual = shared.discarded_gradient(laboratory, findings, settings, measured)
        if dual is not None:
            return dual
    same_step = [p for p in shares if not p.updated_between and any(leaf.holders for leaf in p.leaves)]
    if (displaced or same_step) and (not found.failed or truncation.loses_graph(found.discovered)):
        # where cutting would starve somebody or leave nothing to learn from, what is shared is meant to teach
        needed = bool(starved) or found.failed
        fed = needed or any(p.id in found.discovered.fed | found.discovered.silenced for p in shares)
        inquiry = shared.shared_in_one_step(laboratory, findings, settings, measured, None, fed, shares)
        if inquiry.plans or not needed:
            return inquiry
    if truncation.loses_graph(found.discovered):
        emptied = truncation.emptied(laboratory, findings, settings)
        if emptied is not None:
            standard = Standard(observed, emptied.reference, emptied.reference.progress, measured)
            candidates = tuple(EmptyContainer().after_use(findings, emptied.holders))
            told = tell(replace(findings, cause=Cause.ACCUMULATED_LOSS))
            return Inquiry(told, (Plan(candidates, standard),), emptied.reference.progress - failure.steps)
    if found.cut_short and not starved:
        return Inquiry(tell(findings))
    if starved or found.failed:
        findings = replace(findings, cause=Cause.BUILT_ONCE, starved=starved)
        progress = failure.steps + settings.steps
        held = frozenset(leaf.optimizer for leaf in findings.leaves if leaf.optimizer is not None)
        standard = Standard(observed, None, progress, measured, frozenset(starved) or held)
        candidates = (*MoveIntoLoop().propose(findings), *DropCache().propose(findings))
        never = () if candidates else truncation.never_reset(findings)
        if never:
            return Inquiry(
                tell(replace(findings, cause=Cause.CARRIED_STATE), carried_or_afresh(never, "where it lies then"))
            )
        if not candidates and starved:
            return Inquiry(tell(findings, ONCE_OR_EVERY_STEP))
        if not candidates:
            return Inquiry(tell(replace(findings, cause=Cause.SHARED_GRAPH), shared.STEP_BETWEEN))
        return Inquiry(tell(findings), (Plan(candidates, standard),), settings.steps)
    findings = replace(findings, cause=truncation.cause_of(findings))
    if truncation.ambiguous(findings):
        return Inquiry(tell(findings, LEARNED_OR_FIXED))
    reference = found.replayed
    standard = Standard(observed, reference, reference.progress, measured)
    ways: tuple[str, ...] = ()
    if truncation.made_once_though_learned(findings):
        ways = ONCE_OR_EVERY_STEP
    elif truncation.never_reset(findings):
        ways = carried_or_afresh(truncation.never_reset(findings), "as in the patch shown")
    if ways:
        unsafe = replace(standard, level=Level.UNSAFE)
        return Inquiry(
            tell(findings, ways),
            (Plan(tuple(islice(truncating(findings), FEW)), unsafe),),
            reference.progress - failure.steps,
        )
    return Inquiry(
        tell(findings),
        (Plan(tuple(truncating(findings)), standard),),
        reference.progress - failure.steps,
        _warnings(observed, reference),
    )


def truncating(findings: Findings) -> Iterator[Candidate]:
    """Patches that cut: first what the failing backwards need, then all that keeps a dead graph alive."""
    cuts = [cut for repair in CUT_REPAIRS for cut in repair.cuts(findings)]
    everything = frozenset(findings.readings)
    seen = set()
    both = [*covers(findings, cuts, findings.direct), *covers(findings, cuts, everything)]
    for patch in sorted(both, key=lambda c: (c.preference >= 10, c.changed_lines, c.preference, c.changed_tokens)):
        if patch.edits not in seen:
            seen.add(patch.edits)
            yield patch


def _warnings(*recordings: Recording) -> tuple[str, ...]:
    notes = []
    for recording in recordings:
        notes += [f"the recorder failed: {e.strip().splitlines()[-1]}" for e in recording.agent_errors[:1]]
    return tuple(dict.fromkeys(notes))
