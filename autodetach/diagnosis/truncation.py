"""The reference run for a graph that is gone: discover what is stale, replay until nothing is, see who starves."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass

import libcst as cst

from autodetach.diagnosis.findings import Findings
from autodetach.diagnosis.recording import Holder, Leaf, Pair, Recording, Step
from autodetach.diagnosis.story import place as shown
from autodetach.laboratory import Horizon, Laboratory
from autodetach.model import Cause, Evidence, Json
from autodetach.settings import Settings
from autodetach.source.book import SourceBook
from autodetach.source.expression import Role
from autodetach.source.statement import Statement

MOST_REPLAYS = 4
PROOF_SECONDS = 1.0
"""A run may end at the fewest steps of proof once it has taken this long."""
FEWEST_STEPS = 8
FEWEST_BEFORE_DEATH = 3
"""Where the program does not live for as long as that, whatever its graphs: steps beyond the failure."""


@dataclass(frozen=True)
class Truncation:
    """``replayed`` is the reference trajectory; ``failed`` where cutting alone does not bring the program through."""

    discovered: Recording
    replayed: Recording
    findings: Findings
    failed: bool

    @property
    def cut_short(self) -> bool:
        """Whether cutting brings the program past its failure, and later leaves a loss with nothing to teach: what
        comes out until then is no reference."""
        return self.discovered.failure is not None and not self.failed

    @property
    def uncut_steps(self) -> int:
        """The optimizer steps before the first cut: so far the broken program's run and the reference's are the same.

        Usually that is where the program fails, but what is stale in a kept graph is cut from the start."""
        failed_at = self.findings.failure.steps
        if not self.discovered.has_optimizer:
            return failed_at
        return min((p.read[0] for p in self.discovered.pairs), default=failed_at)


def horizon_beyond(failed_at: int, settings: Settings) -> Horizon:
    return Horizon(
        most=failed_at + max(settings.steps, FEWEST_STEPS) * 4,
        least=failed_at + FEWEST_STEPS,
        seconds=PROOF_SECONDS,
        live_from=failed_at,
    )


def investigate(laboratory: Laboratory, observed: Recording, book: SourceBook, settings: Settings) -> Truncation:
    """Discover, then replay until no stale operand turns up that was not cut from the start."""
    failure = observed.failure
    assert failure is not None
    discovered = laboratory.reference(horizon=horizon_beyond(failure.steps, settings)).wait().recording
    beyond = discovered.progress - failure.steps
    if discovered.death and beyond >= FEWEST_BEFORE_DEATH:
        # once more and less far: what it knew at its end it could not tell
        most = failure.steps + max(beyond // 2, FEWEST_BEFORE_DEATH)
        nearer = Horizon(most=most, live_from=failure.steps)
        discovered = laboratory.reference(horizon=nearer).wait().recording
    if (discovered.failure is not None and not loses_graph(discovered)) or not discovered.relevant:
        findings = Findings(failure, observed, discovered, _relevant(discovered), book)
        return Truncation(discovered, discovered, findings, failed=True)
    horizon = Horizon(most=max(discovered.progress, failure.steps + 1), live_from=failure.steps)
    # of what collects in a container that is never emptied the first reading is meant; elsewhere none is
    together = {kind[:4] for kind in discovered.collected}
    collected = frozenset(p.reading for p in _relevant(discovered) if p.reading[:4] in together)
    # of old losses nothing is wanted; of other old values (a window of outputs) the value is, as a cut leaves it
    losses = frozenset(p.reading for p in _relevant(discovered) if p.scalar)
    interventions: Json = {
        "watch": sorted({k[:3] for k in collected}),
        "drop": sorted({k[:4] for k in collected & losses}),
    }
    wanted = {p.identity: p for p in _relevant(discovered) if p.reading not in collected}
    replayed = discovered
    for _ in range(MOST_REPLAYS):
        replayed = (
            laboratory.reference(list(wanted.values()), horizon, probes=True, interventions=interventions)
            .wait()
            .recording
        )
        fresh = [p for p in _relevant(replayed) if p.identity not in wanted and p.reading not in collected]
        if not fresh:
            break
        wanted.update((p.identity, p) for p in fresh)
    # what was read alive in one step and cut in others has only not yet turned stale within the run
    tail = sorted(replayed.apart | discovered.drawn)
    if tail and replayed.failure is None and not collected:
        again = laboratory.reference(
            list(wanted.values()), horizon, probes=True, interventions=interventions | {"kinds": tail}
        )
        replayed = again.wait().recording
    cuts = _relevant(replayed)
    findings = Findings(failure, observed, replayed, cuts, book, collected=collected)
    return Truncation(discovered, replayed, findings, failed=replayed.failure is not None)


@dataclass(frozen=True)
class Emptied:
    """The run in which lists that are never emptied are, after each backward; ``holders`` is where they lie."""

    reference: Recording
    holders: tuple[Holder, ...]


def emptied(laboratory: Laboratory, findings: Findings, settings: Settings) -> Emptied | None:
    """Lists that still hold, when a step ends, what its backward has used up.

    If taking it out of them after each backward leaves nothing stale, and the program fills them anew in every step,
    that is how it is meant. None where that is not so.
    """
    failure = findings.failure
    horizon = horizon_beyond(failure.steps, settings)
    seen = laboratory.reference(horizon=Horizon(most=failure.steps + 3), holders=True).wait().recording
    places = sorted([astuple(holder.span), holder.path] for holder in seen.holders.values() if holder.container)
    if not places:
        return None
    run = laboratory.reference(horizon=horizon, empty=places).wait().recording
    if run.failure is not None or run.relevant or run.stale_roots or run.progress <= failure.steps + 1:
        return None
    filled = tuple(holder for holder in run.holders.values() if holder.container and _filled_anew(run, holder))
    return Emptied(run, filled) if filled else None


def _filled_anew(run: Recording, holder: Holder) -> bool:
    """Whether a backward after the first found new tensors in what had been emptied."""
    held = [{birth for number, _, birth in run.held[n] if number == holder.id} for n in sorted(run.held)]
    return any(one and two and not one & two for one, two in itertools.pairwise(held))


def _relevant(recording: Recording) -> tuple[Pair, ...]:
    wanted = recording.relevant
    return tuple(p for p in recording.pairs if p.id in wanted and p.birth is not None)


def starved(findings: Findings) -> tuple[tuple[int, int], ...]:
    """Parameters that no backward reaches any more before a step which would have used a gradient of theirs.

    A gradient that is exactly zero by the numbers is one: what counts is the graph.
    """
    found = []
    broken = {s.n: s for s in findings.observed.steps}
    for step in findings.reference.steps:
        for place, lost in enumerate(step.lost):
            if lost and not _reached(step, place):
                found.append((step.optimizer, place))
        before = broken.get(step.n)
        if before is not None and before.optimizer == step.optimizer:
            found += [
                (step.optimizer, place)
                for place, (was, now) in enumerate(zip(before.grads, step.grads, strict=False))
                if was not in (None, 0.0) and now in (None, 0.0) and not _reached(step, place)
            ]
    beginnings = _beginnings(findings) if found else ()
    found = [one for one in found if one not in beginnings]
    found += _silenced(findings)
    if not findings.reference.steps:
        found += _starved_by_hand(findings)
    return tuple(dict.fromkeys(found))


def _beginnings(findings: Findings) -> frozenset[tuple[int, int]]:
    """Parameters that make the first value of a state, again and again (a learned initial state): they are fed where a
    sequence begins, and what is cut in the step after that lies above them and goes on into a state that does not."""
    fed = Counter(
        (step.optimizer, place) for step in findings.reference.steps for place, uses in enumerate(step.uses) if uses
    )
    holders = {pair.id: {holder for leaf in pair.leaves for holder in leaf.holders} for pair in findings.cuts}
    last = max((pair.read[1] for pair in findings.cuts), default=0)
    stays = set()
    for pair in findings.cuts:
        after = [holders[later.id] for later in findings.cuts if pair.id in later.history]
        if after or pair.read[1] < last:
            stays |= holders[pair.id].intersection(*after)
    return frozenset(one for one, times in fed.items() if times > 1 and one not in stays)


def _reached(step: Step, place: int) -> bool:
    return place < len(step.uses) and bool(step.uses[place])


def _silenced(findings: Findings) -> list[tuple[int, int]]:
    """What a whole term of a loss would teach, did the cut not make it constant. It did teach at first: the first
    reading was alive, and nobody writes a term that teaches nobody."""
    silenced = [p for p in findings.cuts if p.id in findings.reference.silenced and p.state == "live"]
    return [holder for p in silenced for leaf in p.leaves for holder in leaf.holders]


def _starved_by_hand(findings: Findings) -> list[tuple[int, int]]:
    """Without an optimizer: module parameters that a backward of the broken program fed and the replay's does not.

    A gradient that is zero by the numbers (below a last layer that starts at zero) is one. Leaves that the program
    made by a call of its own are left out: those may be data; and so are those that it does not update. A leaf is
    known by its values, as long as both runs train alike.
    """
    broken = {b.n: b for b in findings.observed.backwards if b.call == "backward"}
    for backward in findings.reference.backwards:
        before = broken.get(backward.n)
        if before is None or backward.call != "backward":
            continue
        values = {print_: gradient for _, gradient, print_ in backward.leaves}
        alike = [print_ in values for _, _, print_ in before.leaves]
        if not any(alike):
            break
        starving = [
            (-1, i)
            for i, (name, gradient, print_) in enumerate(before.leaves)
            if name.startswith("#") and name not in findings.observed.still
            if gradient is not None and values.get(print_) is None
        ]
        if starving or not all(alike):
            return starving
    return []


def displaced(findings: Findings) -> bool:
    """Whether the cut changes who teaches a parameter: a loss that would have reached it does not any more, while
    others still do."""
    return any(
        lost - uses and step.grads[place] not in (None, 0.0)
        for step in findings.reference.steps
        for place, (lost, uses) in enumerate(zip(step.lost, step.uses, strict=False))
        if place < len(step.grads)
    )


def made_once_though_learned(findings: Findings) -> bool:
    """Whether something computed from what is being learned is made outside of every loop that reads it again: its
    value stays that of the first weights, which may be meant (a target) or not (a part of the model)."""
    for pairs in findings.readings.values():
        births = {p.birth for p in pairs}
        first = min(pairs, key=lambda p: p.read)
        if len(births) > 1 or first.birth is None or not optimised(first.leaves, findings.reference, first.read[0]):
            continue
        makers = {loop.node for _, s in findings.statements(first.birth[0]) for loop in s.loops}
        readers = {loop.node for _, s in findings.statements(first.site) for loop in s.loops}
        if readers and not makers & readers:
            return True
    return False


def loses_graph(recording: Recording) -> bool:
    """Whether cutting left a backward with nothing to differentiate."""
    return recording.failure is not None and recording.failure.kind.value in ("no-grad-fn", "unused-input")


def made_once(findings: Findings, pairs: Iterable[Pair]) -> bool:
    """Whether the tensors of these pairs are made outside of every loop that reads them again and again."""
    pairs = tuple(pairs)
    births = {p.birth for p in pairs}
    reads = {(p.birth, p.read) for p in pairs}
    return len(births) == 1 and len(reads) >= 1 and not any(p.read_before for p in pairs)


def ambiguous(findings: Findings) -> bool:
    """Whether what is cut may have been meant to learn: a leaf that requires gradients, feeds the model as a whole, and
    is held by no optimizer. The program does not say whether the flag or the optimizer's list is the mistake."""
    from autodetach.repairs.drop_requires_grad import is_spurious

    if not findings.leaves or not all(is_spurious(leaf) for leaf in findings.leaves):
        return False
    if _makes_the_target(findings):
        return False
    return any(
        p.id in findings.reference.fed and not p.call.startswith(("__getitem__", "stack", "cat")) for p in findings.cuts
    )


def targets(laboratory: Laboratory, findings: Findings) -> tuple[Evidence, ...]:
    """Where the losses compare what the model makes of each of these leaves with what the program makes of the same
    leaf's values: then all of them are data. Empty where one is not, or where its gradient is asked for.
    """
    sites = tuple(dict.fromkeys(leaf.site for leaf in findings.leaves if leaf.site is not None))
    seen = laboratory.origins(sites).wait().recording
    if not sites or any(site not in seen.compared or site in seen.looked for site in sites):
        return ()
    spans = dict.fromkeys(shown(seen.chain(seen.compared[site])) for site in sites)
    words = "what the model makes of it is compared here with what was computed from the same values: it is data"
    return tuple(Evidence(words, span) for span in spans if span is not None)


def never_reset(findings: Findings) -> tuple[str, ...]:
    """Methods of whatever holds the state that would start it afresh, and that nobody calls on the way to training.

    Then the program does not say whether one step's state is meant for the next (carry it, detached) or was left over
    (start afresh). Calls in an evaluation, or in the holder's own methods, are no answer.
    """
    names: set[str] = set()
    for holder in findings.reference.holders.values():
        if holder.resets and findings.held_at([holder])[1]:
            names.update(holder.resets)
    if not names:
        return ()
    places = [findings.book.statement(frame.span) for frame in findings.failure.chain if frame.editable]
    codes = [code for place in places if place is not None for code in _way_there(place)]
    called = any(re.search(rf"\.{name}\(", code) for name in names for code in codes)
    return () if called else tuple(sorted(names))


def overwritten_input(findings: Findings) -> str:
    """The attribute of an argument that held data at first and is overwritten with what the function computes of it.

    It may be a state that develops, or an input that a slip overwrites; empty where there is no such thing.
    """
    for reading, pairs in findings.readings.items():
        if tuple(reading[3:]) not in findings.reference.starts:
            continue
        for point in findings.passed_by(pairs[0]):
            function = point.expression.statement.function
            if point.expression.role is not Role.STORE or function is None:
                continue
            assert isinstance(function.node, cst.FunctionDef)
            parameters = {p.name.value for p in function.node.params.params[:]}
            for target in point.expression.targets:
                owner = target.partition(".")[0].partition("[")[0]
                if owner != target and owner in parameters - {"self", "cls"}:
                    return target
    return ""


def _way_there(statement: Statement) -> Iterable[str]:
    """The code that runs before or around a statement: its function and the making of its object, or its module."""
    function = statement.function
    if function is None:
        outermost = statement.blocks[-1] if statement.blocks else statement
        yield from (s.code for s in outermost.suite if s.kind not in ("FunctionDef", "ClassDef"))
        return
    yield function.code
    home = function.block
    if home is not None and home.kind == "ClassDef":
        yield from (
            m.code for m in home.body if isinstance(m.node, cst.FunctionDef) and m.node.name.value == "__init__"
        )


def _makes_the_target(findings: Findings) -> bool:
    """Whether what is compared with the model's output comes from the same leaves: then those are data.

    A penalty on something learned also enters the loss alone, but as a term of its own."""
    fed, silenced = findings.reference.fed, findings.reference.silenced
    inputs = {leaf.number for p in findings.cuts if p.id in fed for leaf in p.leaves}
    alone = [p for p in findings.cuts if p.id not in fed and p.id not in silenced]
    return any(leaf.number in inputs for p in alone for leaf in p.leaves)


def optimised(leaves: Iterable[Leaf], recording: Recording, after: int) -> bool:
    """Whether an optimizer that steps after step ``after`` holds one of the leaves."""
    stepping = {s.optimizer for s in recording.steps if s.n > after}
    return any(optimizer in stepping for leaf in leaves for optimizer, _ in leaf.holders)


def cause_of(findings: Findings) -> Cause:
    """The name of what the replay shows, where truncation is the remedy."""
    from autodetach.repairs.drop_requires_grad import is_spurious

    pairs = findings.cuts
    if any(p.scalar for reading in findings.collected for p in findings.readings.get(reading, ())):
        return Cause.ACCUMULATED_LOSS
    if findings.leaves and all(is_spurious(leaf) for leaf in findings.leaves):
        return Cause.SPURIOUS_LEAF
    roots = {r.birth for r in findings.observed.failure_roots if r.birth}
    if any(p.scalar for p in pairs) and any(
        p.birth and (p.birth[0], p.birth[2]) in {(r[0], r[2]) for r in roots} for p in pairs
    ):
        return Cause.ACCUMULATED_LOSS
    if made_once(findings, pairs):
        return Cause.DATA_WITH_GRAPH
    return Cause.CARRIED_STATE
