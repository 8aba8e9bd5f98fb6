"""From a failure to its diagnosis, the candidates worth trying, and what they are held to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from autodetach.diagnosis import derivative, leaf_in_place, shared, truncation, values_taken
from autodetach.diagnosis.findings import Findings
from autodetach.diagnosis.lost_graph import graph_was_lost
from autodetach.diagnosis.plan import Inquiry, Plan
from autodetach.diagnosis.recording import Recording
from autodetach.diagnosis.siblings import explained
from autodetach.diagnosis.story import tell
from autodetach.diagnosis.truncation import Truncation
from autodetach.laboratory import Laboratory
from autodetach.model import Candidate, Cause, Evidence, FailureKind, Level
from autodetach.repairs import CUT_REPAIRS
from autodetach.repairs.cover import covers
from autodetach.repairs.drop_cache import DropCache
from autodetach.repairs.empty_container import EmptyContainer
from autodetach.repairs.move_into_loop import MoveIntoLoop
from autodetach.settings import Settings
from autodetach.source.book import SourceBook
from autodetach.verification.criteria import Spread, spread
from autodetach.verification.standard import Standard

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


def input_or_state(target: str) -> tuple[str, ...]:
    return (
        f"if {target} should stay the input that it was at first, give what is computed from it a name of its own",
        f"if {target} is a state that goes on from step to step, detach it between them, as in the patch shown",
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
    if failure.kind in values_taken.TAKERS:
        return values_taken.inquire(laboratory, observed, book, settings)
    if failure.kind is FailureKind.LEAF_IN_PLACE:
        return leaf_in_place.inquire(laboratory, observed, book, settings)
    return explained(observed, book, settings)


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
    inquiry = _within_one_step(laboratory, found, settings, measured, starved)
    inquiry = inquiry or _never_emptied(laboratory, found, settings, measured)
    if inquiry is not None:
        return inquiry
    if found.cut_short and not starved:
        return Inquiry(tell(findings))
    if starved or found.failed:
        return _made_once(found, settings, measured, starved)
    return _truncated(laboratory, found, measured)


def _within_one_step(
    laboratory: Laboratory,
    found: Truncation,
    settings: Settings,
    measured: Spread,
    starved: tuple[tuple[int, int], ...],
) -> Inquiry | None:
    """Two losses of one step go through the same graph; None where the runs show something else."""
    findings = found.findings
    shares = shared.read_again_in_one_step(findings, found.discovered)
    displaced = bool(shares) and truncation.displaced(findings)
    if starved or displaced:
        dual = shared.discarded_gradient(laboratory, findings, settings, measured)
        if dual is not None:
            return dual
    same_step = [p for p in shares if not p.updated_between and any(leaf.holders for leaf in p.leaves)]
    if not (displaced or same_step) or (found.failed and not truncation.loses_graph(found.discovered)):
        return None
    # where cutting would starve somebody or leave nothing to learn from, what is shared is meant to teach
    needed = bool(starved) or found.failed
    fed = needed or any(p.id in found.discovered.fed | found.discovered.silenced for p in shares)
    inquiry = shared.shared_in_one_step(laboratory, findings, settings, measured, None, fed, shares)
    return inquiry if inquiry.plans or not needed else None


def _never_emptied(laboratory: Laboratory, found: Truncation, settings: Settings, measured: Spread) -> Inquiry | None:
    """Cutting leaves nothing to learn from, for what is read was all used up: a list keeps it. None if no list does."""
    if not truncation.loses_graph(found.discovered):
        return None
    findings = found.findings
    emptied = truncation.emptied(laboratory, findings, settings)
    if emptied is None:
        return None
    standard = Standard(findings.observed, emptied.reference, emptied.reference.progress, measured)
    candidates = tuple(EmptyContainer().after_use(findings, emptied.holders))
    told = tell(replace(findings, cause=Cause.ACCUMULATED_LOSS))
    return Inquiry(told, (Plan(candidates, standard),), emptied.reference.progress - findings.failure.steps)


def _made_once(
    found: Truncation, settings: Settings, measured: Spread, starved: tuple[tuple[int, int], ...]
) -> Inquiry:
    """What is stale should learn: it is to be made anew in every step."""
    findings = replace(found.findings, cause=Cause.BUILT_ONCE, starved=starved)
    candidates = (*MoveIntoLoop().propose(findings), *DropCache().propose(findings))
    if candidates:
        progress = findings.failure.steps + settings.steps
        held = frozenset(leaf.optimizer for leaf in findings.leaves if leaf.optimizer is not None)
        standard = Standard(findings.observed, None, progress, measured, frozenset(starved) or held)
        return Inquiry(tell(findings), (Plan(candidates, standard),), settings.steps)
    resets = truncation.never_reset(findings)
    if resets:
        ways = carried_or_afresh(resets, "where it lies then")
        return Inquiry(tell(replace(findings, cause=Cause.CARRIED_STATE), ways))
    if starved:
        return Inquiry(tell(findings, ONCE_OR_EVERY_STEP))
    return Inquiry(tell(replace(findings, cause=Cause.SHARED_GRAPH), shared.STEP_BETWEEN))


def _truncated(laboratory: Laboratory, found: Truncation, measured: Spread) -> Inquiry:
    """The replay is how the program is meant, unless the program leaves two meanings open."""
    findings = replace(found.findings, cause=truncation.cause_of(found.findings))
    targets: tuple[Evidence, ...] = ()
    if truncation.ambiguous(findings):
        targets = truncation.targets(laboratory, findings)
        if not targets:
            return Inquiry(tell(findings, LEARNED_OR_FIXED))
    reference, observed = found.replayed, findings.observed
    standard = Standard(observed, reference, reference.progress, measured)
    steps = reference.progress - findings.failure.steps
    ways: tuple[str, ...] = ()
    resets, overwritten = truncation.never_reset(findings), truncation.overwritten_input(findings)
    if truncation.made_once_though_learned(findings):
        ways = ONCE_OR_EVERY_STEP
    elif overwritten:
        ways = input_or_state(overwritten)
    elif resets:
        ways = carried_or_afresh(resets, "as in the patch shown")
    if ways:
        unsafe = replace(standard, level=Level.UNSAFE)
        return Inquiry(tell(findings, ways), (Plan(tuple(islice(truncating(findings), FEW)), unsafe),), steps)
    plan = Plan(tuple(truncating(findings)), standard)
    diagnosis = tell(findings)
    diagnosis = replace(diagnosis, evidence=(*diagnosis.evidence, *targets))
    return Inquiry(diagnosis, (plan,), steps, _warnings(observed, reference))


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
