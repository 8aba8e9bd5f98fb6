"""Where cutting is no answer: two passes of one step through one graph, a discarded gradient, a stale root, an in-place
change. Each with the run that shows how the program would train without the fault."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, replace

from autodetach.diagnosis.findings import Findings
from autodetach.diagnosis.lost_graph import constants_beyond
from autodetach.diagnosis.plan import Inquiry, Plan
from autodetach.diagnosis.recording import Backward, Pair, Recording, Root
from autodetach.diagnosis.story import tell
from autodetach.laboratory import Horizon, Laboratory
from autodetach.model import Candidate, Cause, Evidence, FailureKind, Level, Passed
from autodetach.repairs import CUT_REPAIRS
from autodetach.repairs.backward_on_fresh_loss import BackwardOnFreshLoss
from autodetach.repairs.clone_operand import CloneOperand
from autodetach.repairs.cover import covers
from autodetach.repairs.create_graph import create_graph_at
from autodetach.repairs.interface import smallest_first
from autodetach.repairs.lost import Lost
from autodetach.repairs.move_below_step import MoveBelowStep
from autodetach.repairs.move_into_loop import MoveIntoLoop
from autodetach.repairs.one_backward import KeepGraph, OneBackward
from autodetach.repairs.out_of_place import OutOfPlace
from autodetach.repairs.recompute_in_closure import RecomputeInClosure
from autodetach.settings import Settings
from autodetach.verification.criteria import Spread, same_training
from autodetach.verification.standard import Standard

PROOF = 8
"""Steps to be made where no reference tells how far to go."""
BOTH_OR_CONSTANT = (
    "if both losses are meant to teach what they share, call backward once on their sum",
    "if the second loss takes the shared value as a constant (an advantage, a target), detach it there",
)
STEP_BETWEEN = (
    "call every backward of the step first and step afterwards: then each loss is differentiated at the same weights, "
    "and gradients of both losses add up where they share parameters",
    "compute the second loss anew after the first step: two updates a batch, at the price of a second forward pass",
)


def investigate(laboratory: Laboratory, findings: Findings, settings: Settings, measured: Spread) -> Inquiry:
    """The failing backward was called on a root whose graph is dead already."""
    failure = findings.failure
    root = next(iter(findings.reference.failure_roots), None)
    if root is None:
        return Inquiry(tell(findings))
    horizon = Horizon.beyond(failure.steps, settings)
    if failure.kind is FailureKind.IN_PLACE and not _stepped(root):
        return _changed_in_place(laboratory, findings, root, horizon, measured)
    if failure.kind is FailureKind.IN_PLACE and not root.again and "freed" not in root.states:
        return _stepped_between(replace(findings, cause=Cause.IN_PLACE_CHANGE), root, measured)
    if root.again:
        return _same_root(laboratory, findings, root, horizon, measured)
    stale = findings.reference.stale_roots[-1:]
    return shared_in_one_step(laboratory, findings, settings, measured, root, any(r.fed or r.alone for r in stale))


def _stepped(root: Root) -> bool:
    return any(kind == "step" for dead in root.dead if dead.state == "outdated" for kind, _, _ in dead.since)


def _changed_in_place(
    laboratory: Laboratory, findings: Findings, root: Root, horizon: Horizon, measured: Spread
) -> Inquiry:
    outdated = tuple(d for d in root.dead if d.state == "outdated" and d.site is not None)
    findings = replace(findings, cause=Cause.IN_PLACE_CHANGE)
    evidence = tuple(
        Evidence(
            f"{d.node.removesuffix('Backward0')} saved a value here ({', '.join(d.names)}) that is overwritten later",
            s,
        )
        for d in outdated[:3]
        for s in [_span(findings, d.site)]
    )
    diagnosis = tell(findings)
    diagnosis = replace(diagnosis, evidence=(*diagnosis.evidence, *evidence))
    sites = sorted({d.site for d in outdated if d.site})
    reference = laboratory.intervene({"clone": sites, "clone_result": sites}, horizon).wait().recording
    if not outdated or reference.failure is not None:
        return Inquiry(diagnosis)
    standard = Standard(findings.observed, reference, reference.progress, measured)
    findings = replace(findings, reference=reference)
    candidates = [
        *CloneOperand().propose(findings, outdated),
        *OutOfPlace().propose(findings, sorted(reference.written)),
    ]
    return Inquiry(
        diagnosis, (Plan(smallest_first(candidates), standard),), reference.progress - findings.failure.steps
    )


def _same_root(laboratory: Laboratory, findings: Findings, root: Root, horizon: Horizon, measured: Spread) -> Inquiry:
    """Backward was called on a tensor that was backpropagated before."""
    findings = replace(findings, cause=Cause.STALE_ROOT)
    failure = findings.failure
    site = findings.observed.failure_site
    reference = laboratory.intervene({"fresh_root": [site]}, horizon).wait().recording
    if reference.failure is None and reference.progress > failure.steps:
        standard = Standard(findings.observed, reference, reference.progress, measured)
        plan = Plan(tuple(BackwardOnFreshLoss().propose(findings, root)), standard)
        return Inquiry(tell(findings), (plan,), reference.progress - failure.steps)
    held = frozenset(leaf.optimizer for leaf in root.leaves if leaf.optimizer is not None)
    standard = Standard(findings.observed, None, failure.steps + 3, measured, held)
    plan = Plan(tuple(RecomputeInClosure().propose(findings, root)), standard)
    return Inquiry(tell(findings), (plan,), 3)


def shared_in_one_step(
    laboratory: Laboratory,
    findings: Findings,
    settings: Settings,
    measured: Spread,
    root: Root | None,
    fed: bool,
    shares: Iterable[Pair] = (),
) -> Inquiry:
    """Let every backward keep its graph: where no weight changed in between, that is how the step is meant.

    If what the losses share feeds a model in the second one (``fed``), both are meant to teach it; so they are if
    nobody else would learn from the second loss. If it enters that loss beside what learns (an advantage, a target),
    it may be meant as a constant. ``shares``: the readings of what an earlier loss went through, where the root is not
    known.
    """
    failure = findings.failure
    horizon = Horizon.beyond(failure.steps, settings)
    earlier = _earlier(findings, root, shares)
    findings = replace(findings, cause=Cause.SHARED_GRAPH)
    if earlier is None:
        return Inquiry(tell(replace(findings, cause=Cause.UNKNOWN)))
    if earlier.call == "grad":
        return first_order(laboratory, findings, settings, measured, (earlier,))
    kept = (
        laboratory.reference(horizon=horizon, cut_stale=False, interventions={"retain": [earlier.site]})
        .wait()
        .recording
    )
    if kept.failure is not None:
        cause = Cause.IN_PLACE_CHANGE if kept.failure.kind is FailureKind.IN_PLACE else Cause.UNKNOWN
        return _stepped_between(replace(findings, cause=cause), root, measured)
    progress = kept.progress - failure.steps
    level = Level.SAFE if fed else Level.UNSAFE
    standard = Standard(findings.observed, kept, kept.progress, measured, level=level)
    chain = findings.observed.chain(earlier.site)
    candidates = [*OneBackward().propose(findings, chain), *KeepGraph().propose(findings, chain)]
    if findings.cuts:
        candidates += MoveIntoLoop().propose(findings)
    candidates.sort(key=lambda c: (c.changed_lines, c.preference))
    ways = () if fed else BOTH_OR_CONSTANT
    return Inquiry(tell(findings, ways), (Plan(tuple(candidates), standard),), progress)


def freed_by_grad(findings: Findings) -> tuple[Backward, ...]:
    """The ``autograd.grad`` calls of the same step that freed what the failing backward needs."""
    numbers = set()
    for pair in findings.cuts:
        for kind, n, kept in pair.since:
            if kind == "step" or (kind == "backward" and not kept):
                break
            if kind == "grad" and not kept:
                numbers.add(n)
                break
    return tuple(b for b in findings.reference.backwards if b.n in numbers)


def first_order(
    laboratory: Laboratory,
    findings: Findings,
    settings: Settings,
    measured: Spread,
    calls: tuple[Backward, ...],
) -> Inquiry:
    """A gradient was taken without a graph of its own, and its taking freed the graph.

    If training is the same with that graph only kept as with the gradient differentiable, nothing was made of the
    gradient that learns: then keeping it is enough.
    """
    failure = findings.failure
    findings = replace(findings, cause=Cause.FIRST_ORDER_GRAD)
    horizon = Horizon.beyond(failure.steps, settings)
    recording = findings.reference if calls[0] in findings.reference.backwards else findings.observed
    sites = list(dict.fromkeys(call.site for call in calls))
    chains = [recording.chain(site) for site in sites]
    places = sorted({astuple(chain[0].span) for chain in chains if chain})
    more, recording = constants_beyond(laboratory, recording, places, failure.steps)
    sites += [site for site in more if site not in sites]
    places = sorted({astuple(frame.span) for site in sites for frame in recording.chain(site)[:1]})
    created = laboratory.intervene({"create": places}, horizon).wait().recording
    kept = laboratory.intervene({"retain": sites}, horizon).wait().recording
    if created.failure is not None:
        return Inquiry(tell(findings))
    lost = Lost(failure, recording, findings.book)
    candidates = list(create_graph_at(lost, sites))
    if kept.failure is None and isinstance(same_training(kept, created, measured), Passed):
        candidates = [*(c for chain in chains[:1] for c in KeepGraph().propose(findings, chain)), *candidates]
    standard = Standard(findings.observed, created, created.progress, measured)
    return Inquiry(tell(findings), (Plan(tuple(candidates), standard),), created.progress - failure.steps)


def _stepped_between(findings: Findings, root: Root | None, measured: Spread) -> Inquiry:
    """An optimizer stepped between the loss and its backward, and nothing of the graph is shared with another loss."""
    diagnosis = tell(findings, STEP_BETWEEN)
    if root is None or "freed" in root.states:
        return Inquiry(diagnosis)
    failure = findings.failure
    held = frozenset(leaf.optimizer for leaf in root.leaves if leaf.optimizer is not None)
    last = {s.optimizer for s in findings.observed.steps[-1:]}
    fed = frozenset(place for place in held if place[0] not in last)
    standard = Standard(findings.observed, None, failure.steps + PROOF, measured, fed)
    sites = [s.site for s in findings.observed.steps]
    return Inquiry(diagnosis, (Plan(tuple(MoveBelowStep().propose(findings, root, sites)), standard),), PROOF)


def _earlier(findings: Findings, root: Root | None, shares: Iterable[Pair]) -> Backward | None:
    """The backward that freed what the failing one needed."""
    numbers = []
    for dead in root.dead if root is not None else ():
        numbers += [n for kind, n, kept in dead.since if kind != "step" and not kept][:1]
    for pair in shares if root is None else ():
        numbers += [n for kind, n, kept in pair.since if kind != "step" and not kept][:1]
    known = {b.n: b for b in (*findings.observed.backwards, *findings.reference.backwards)}
    return next((known[n] for n in sorted(numbers) if n in known), None)


def discarded_gradient(
    laboratory: Laboratory, findings: Findings, settings: Settings, measured: Spread
) -> Inquiry | None:
    """Cutting starves a network, and the earlier loss's gradient into it is thrown away: cut the earlier reading.

    None where that is not what the runs show.
    """
    failure = findings.failure
    pairs = first_of_its_kind(findings.cuts)
    if any(_leaves_stepped(findings, p) for p in pairs):
        return None
    freeing = (next((n for kind, n, kept in p.since if kind == "backward" and not kept), None) for p in pairs)
    earlier = {n for n in freeing if n is not None}
    sites = sorted({b.site for b in findings.reference.backwards if b.n in earlier})
    if not sites:
        return None
    horizon = Horizon.beyond(failure.steps, settings)
    kept = laboratory.reference(horizon=horizon, cut_stale=False, interventions={"retain": sites}).wait().recording
    owned = _stepped_by_its_own(findings, sites, pairs)
    if not owned and (kept.failure is not None or not _discarded(kept, sites, pairs)):
        return None
    births = {p.birth for p in findings.cuts}
    numbers = {b.n for b in findings.reference.backwards if b.site in sites}
    read = {i for n, ids in findings.reference.reached.items() if n in numbers for i in ids}
    kinds = {f.kind for f in findings.reference.flows if f.birth in births}
    kinds |= {p.reading for p in findings.cuts if p.id in read}
    dual = (
        laboratory.reference(horizon=horizon, cut_stale=False, probes=True, interventions={"kinds": sorted(kinds)})
        .wait()
        .recording
    )
    reached = dual.relevant
    cuts = tuple(p for p in dual.pairs if p.id in reached and p.birth is not None)
    if dual.failure is not None or not cuts:
        return None
    if not owned and not isinstance(same_training(dual, kept, measured), Passed):
        return None
    found = Findings(failure, findings.observed, dual, cuts, findings.book, Cause.DISCARDED_GRADIENT)
    standard = Standard(findings.observed, dual, dual.progress, measured)
    return Inquiry(tell(found), (Plan(tuple(_cutting(found)), standard),), dual.progress - failure.steps)


def read_again_in_one_step(findings: Findings, discovered: Recording) -> list[Pair]:
    """Stale readings of what an earlier loss of the iteration went through, the parameters below not yet stepped."""
    relevant = discovered.relevant
    stale = first_of_its_kind(p for p in discovered.pairs if p.id in relevant and p.birth is not None)
    return [p for p in stale if not p.read_before and not _leaves_stepped(findings, p)]


def _stepped_by_its_own(findings: Findings, sites: list[str], pairs: Iterable[Pair]) -> bool:
    """Whether the earlier loss is followed by the step of an optimizer that holds nothing below what is shared, and
    the later loss by one that does: each loss is for its own network, however the gradients are zeroed."""
    recording = findings.reference
    holders = {optimizer for p in pairs for leaf in p.leaves for optimizer, _ in leaf.holders}
    later = {n for n, ids in recording.reached.items() if any(p.id in ids for p in findings.cuts)}
    earlier = {b.n for b in recording.backwards if b.site in sites} - later

    def next_optimizer(number: int) -> int | None:
        return next((s.optimizer for s in recording.steps if s.backwards >= number), None)

    first = {next_optimizer(n) for n in earlier} - {None}
    second = {next_optimizer(n) for n in later} - {None}
    return bool(holders and first and second) and not first & holders and second <= holders


def first_of_its_kind(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    found: dict[object, Pair] = {}
    for pair in pairs:
        found.setdefault(pair.reading, pair)
    return tuple(found.values())


def _leaves_stepped(findings: Findings, pair: Pair) -> bool:
    """Whether an optimizer that holds a leaf below the tensor stepped between its making and its reading."""
    holders = {optimizer for leaf in pair.leaves for optimizer, _ in leaf.holders}
    stepped = {n for kind, n, _ in pair.since if kind == "step"}
    return any(s.n in stepped and s.optimizer in holders for s in findings.reference.steps)


def _discarded(kept: Recording, sites: list[str], pairs: Iterable[Pair]) -> bool:
    """Whether no step ever uses the gradient that the backwards at ``sites`` put into the leaves of ``pairs``."""
    thrown = {b.n for b in kept.backwards if b.site in sites}
    leaves = {holder for p in pairs for leaf in p.leaves for holder in leaf.holders}
    used = [
        step.uses[place] & thrown
        for step in kept.steps
        for place in range(len(step.uses))
        if (step.optimizer, place) in leaves
    ]
    return bool(leaves) and bool(used) and not any(used)


def _cutting(findings: Findings) -> list[Candidate]:
    cuts = [cut for repair in CUT_REPAIRS for cut in repair.cuts(findings)]
    found = covers(findings, cuts, frozenset(findings.readings))
    return sorted(found, key=lambda c: (c.preference >= 10, c.changed_lines, c.changed_tokens))


def _span(findings: Findings, site: str | None):  # type: ignore[no-untyped-def]
    frames = findings.frames(site)
    return frames[0].span if frames else None
