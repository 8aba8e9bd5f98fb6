"""A backward whose root has no graph: where it was lost, and the run in which it is not."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Any

from autodetach.diagnosis import cut_off
from autodetach.diagnosis.plan import Inquiry, Plan
from autodetach.diagnosis.recording import Recording, Shade
from autodetach.diagnosis.story import place
from autodetach.laboratory import Horizon, Laboratory
from autodetach.model import Candidate, Cause, Chain, Diagnosis, Evidence, Json, Level
from autodetach.repairs.checkpoint_without_reentry import CheckpointWithoutReentry
from autodetach.repairs.create_graph import CreateGraph
from autodetach.repairs.lost import Lost
from autodetach.repairs.move_out_of_no_grad import MoveOutOfNoGrad
from autodetach.settings import Settings
from autodetach.source.book import SourceBook
from autodetach.verification.standard import Standard

Places = list[tuple[Any, ...]]
"""Positions of calls, as spans are written."""

MOST_LOSSES = 6
BEYOND = 4
"""Steps that a second loss of the same program may be away."""
WORDS = {
    "grad-off": "computed here with grad mode off, although what it is computed from needs gradients",
    "detached": "detached here",
    "remade": "made anew of the values of tensors: the copy has no graph",
    "numbers": "a tensor made of plain numbers: a constant, as far as autograd knows",
    "no-derivative": "an operation without a derivative",
    "first-order": "a gradient taken here without create_graph=True: a constant, as far as autograd knows",
    "checkpoint": "computed in a reentrant checkpoint none of whose inputs requires gradients",
}
CAUSES = {
    "grad-off": Cause.GRAD_MODE_OFF,
    "first-order": Cause.FIRST_ORDER_GRAD,
    "checkpoint": Cause.CHECKPOINT,
}
NOT_DIFFERENTIABLE = (
    "replace the operation by one that has a derivative (softmax instead of argmax, a straight-through estimator "
    "instead of round, torch instead of numpy); each is another training objective",
    "treat the value as a constant and take the loss from the tensor before it",
)
DETACHED = (
    "if the detached value is meant to learn, take the detach() away",
    "if it is meant to be constant, the loss needs another term that depends on the parameters",
)


def graph_was_lost(laboratory: Laboratory, observed: Recording, book: SourceBook, settings: Settings) -> Inquiry:
    """Watch which operations lost the graph, and let the reference run keep it there."""
    failure = observed.failure
    assert failure is not None
    lost = _watched(laboratory, observed, book)
    reasons = {s.reason for s in lost.on_path}
    cause = next((CAUSES[r] for r in ("checkpoint", "first-order", "grad-off") if r in reasons), None)
    if cause is None:
        return _cut_off(laboratory, observed, lost, settings) or Inquiry(_explained(lost, reasons))
    horizon = Horizon.beyond(failure.steps, settings)
    cut = bool(reasons & {"detached", "remade"})
    reference = laboratory.intervene(_interventions(lost), horizon, learners=cut).wait().recording
    if reference.failure is not None and cut:
        return _cut_off(laboratory, observed, lost, settings) or Inquiry(_explained(lost, reasons))
    if reference.updated and reference.failure is None:
        # updates by hand: what they change is what learns, and nothing else needs a graph
        lost = _watched(laboratory, observed, book, {"learners": sorted(reference.updated)})
        reference = laboratory.intervene(_interventions(lost), horizon).wait().recording
    diagnosis = Diagnosis(cause, failure, _evidence(lost))
    if reference.failure is not None or not (reference.steps or reference.backwards):
        return Inquiry(diagnosis)
    repairs = (CheckpointWithoutReentry(), CreateGraph(), MoveOutOfNoGrad())
    candidates: list[Candidate] = [c for repair in repairs for c in repair.propose(lost)]
    candidates.sort(key=lambda c: (c.preference, c.changed_lines, c.changed_tokens))
    standard = Standard(observed, reference, reference.progress)
    if cut_off.would_do(laboratory, lost, horizon):
        standard = replace(standard, level=Level.UNSAFE)
        diagnosis = replace(diagnosis, ways_out=cut_off.SEVERAL)
    return Inquiry(diagnosis, (Plan(tuple(candidates), standard),), reference.progress - failure.steps)


def _cut_off(laboratory: Laboratory, observed: Recording, lost: Lost, settings: Settings) -> Inquiry | None:
    """What the program does to its own graph: a detach, a tensor rebuilt, numbers, frozen parameters."""
    frozen = lost.recording.frozen
    if lost.on_path:
        return cut_off.detached(laboratory, observed, lost, settings, _interventions(lost), _evidence)
    if frozen is not None and not any(s.reason == "no-derivative" for s in lost.recording.shades):
        return cut_off.frozen(laboratory, observed, lost, frozen, settings)
    return cut_off.numbers(laboratory, observed, lost, settings, _evidence)


def _watched(laboratory: Laboratory, observed: Recording, book: SourceBook, more: Json | None = None) -> Lost:
    """Watch the program to its failure; with the graph kept so far, watch again: a second loss may lack one, too."""
    failure = observed.failure
    assert failure is not None
    shades: dict[Shade, None] = {}
    sites: dict[str, Chain] = {}
    more = more or {}
    seen = laboratory.shadow(more).wait().recording
    for _ in range(MOST_LOSSES):
        found = [*seen.shades, *(constant(site) for site in sorted(seen.constants) if shades)]
        fresh = [s for s in found if s not in shades]
        shades.update(dict.fromkeys(fresh))
        sites.update(seen.sites)
        lost = Lost(failure, replace(seen, shades=tuple(shades), sites=sites), book)
        interventions = _interventions(lost)
        if not fresh or not interventions:
            break
        horizon = Horizon(most=failure.steps + BEYOND)
        seen = laboratory.shadow({**interventions, **more}, horizon).wait().recording
        if seen.failure is not None and seen.failure.kind is not failure.kind:
            break
    return Lost(failure, replace(seen, shades=tuple(shades), sites={**sites, **seen.sites}), book)


def constant(site: str) -> Shade:
    """A first-order gradient in a loss that has a graph for other reasons: no error, and nothing learns by it."""
    return Shade(site, "grad", "first-order", True, False, True, None, "gradient")


def constants_beyond(
    laboratory: Laboratory, recording: Recording, places: Places, steps: int
) -> tuple[list[str], Recording]:
    """The sites of first-order gradients that losses are made of once ``places`` create graphs, until none is left."""
    sites: dict[str, None] = {}
    seen = recording
    for _ in range(MOST_LOSSES):
        seen = laboratory.shadow({"create": places}, Horizon(most=steps + BEYOND)).wait().recording
        fresh = [s for s in sorted(seen.constants) if s not in sites]
        if not fresh:
            break
        sites.update(dict.fromkeys(fresh))
        places = sorted({*places, *(astuple(f.span) for s in sites for f in seen.chain(s)[:1])})
    return list(sites), seen


def _interventions(lost: Lost) -> Json:
    made: Json = {}
    off = sorted({s.site for s in lost.on_path if not s.grad and s.reason != "checkpoint"})
    if off:
        made["grad_on"] = off
    if lost.because("first-order"):
        calls = [lost.recording.chain(s.site)[:1] for s in lost.because("first-order")]
        made["create"] = sorted({astuple(frame.span) for chain in calls for frame in chain})
    if lost.because("checkpoint"):
        made["no_checkpoint"] = True
    return made


def _evidence(lost: Lost) -> tuple[Evidence, ...]:
    failure = lost.failure
    told = [Evidence(f"step {failure.steps + 1}: the loss of this backward has no graph", place(failure.chain))]
    for switch in lost.switches:
        told.append(Evidence("grad mode is switched off here", place(lost.recording.chain(switch))))
    shades: dict[object, Shade] = {}
    for shade in lost.recording.shades:
        if shade.reason in WORDS and (shade.on_path or shade.reason in ("no-derivative", "numbers")):
            shades.setdefault((place(lost.recording.chain(shade.site)), shade.reason), shade)
    for shade in list(shades.values())[:6]:
        words = WORDS[shade.reason]
        told.append(Evidence(f"{shade.call}: {words}", place(lost.recording.chain(shade.site))))
    if not shades:
        for site, call in lost.recording.left[-3:]:
            told.append(Evidence(f"a value left torch here ({call})", place(lost.recording.chain(site))))
    return tuple(dict.fromkeys(told))


def _explained(lost: Lost, reasons: set[str]) -> Diagnosis:
    ways = DETACHED if "detached" in reasons else NOT_DIFFERENTIABLE
    return Diagnosis(Cause.NOT_DIFFERENTIABLE, lost.failure, _evidence(lost), ways)
