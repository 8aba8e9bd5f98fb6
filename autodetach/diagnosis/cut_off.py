"""The program itself cuts the loss off its graph: it detaches, rebuilds from numbers, or has frozen all parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from autodetach.diagnosis.plan import Inquiry, Plan
from autodetach.diagnosis.recording import Frozen, Recording
from autodetach.diagnosis.story import place
from autodetach.laboratory import Horizon, Laboratory
from autodetach.model import Cause, Diagnosis, Evidence, Json, Level, Span
from autodetach.repairs.interface import smallest_first
from autodetach.repairs.keep_graph import KeepTheGraph
from autodetach.repairs.lost import Lost
from autodetach.repairs.stay_in_torch import StayInTorch
from autodetach.repairs.thaw import ThawTrained
from autodetach.settings import Settings
from autodetach.verification.standard import Standard

MOST_SITES = 4
"""Of so many cuts it is asked whether each is one too many; with more nothing is called safe."""
MOST_LEFT = 6
ROUNDS = 4
SEVERAL = (
    "several values feed the loss without a graph, and any of them alone would give it one: let the one keep it that "
    "is to learn, and detach what is meant as a constant",
)
STILL_CUT = (
    "with its graph the loss still teaches only a part of what the optimizer holds: if the rest is to learn, too, look "
    "for another detach() before it; if not, do not give it to the optimizer",
)
CONSTANTS = (
    "a number from item() or float() is a constant: compute the loss from the tensors, by torch.stack(...) or a plain "
    "sum",
)
WHO_LEARNS = (
    "freeze the parameters that are not to learn, and only those: before the new layers are made, or layer by layer",
    "if all of them are to learn, freeze nothing",
)


def _goes_on(recording: Recording) -> bool:
    return recording.failure is None and recording.how != "error" and bool(recording.steps or recording.backwards)


def detached(
    laboratory: Laboratory,
    observed: Recording,
    lost: Lost,
    settings: Settings,
    interventions: Json,
    evidence: Callable[[Lost], tuple[Evidence, ...]],
) -> Inquiry | None:
    """The only way from the loss to what learns leads through a ``detach()`` or a rebuilt tensor: keep it open there.

    None where that does not help. Where fewer cuts would do, too, the program does not say which was meant.
    """
    horizon = Horizon.beyond(lost.failure.steps, settings)
    kept: frozenset[str] = frozenset()
    for _ in range(ROUNDS):
        found = {s.site for s in lost.on_path if s.reason in ("detached", "remade")}
        if found <= kept:
            break
        kept |= found
        seen = laboratory.shadow({**interventions, **_keeping(kept)}, horizon).wait().recording
        shades = tuple(dict.fromkeys((*lost.recording.shades, *seen.shades)))
        known = {**lost.recording.sites, **seen.sites}
        lost = replace(lost, recording=replace(lost.recording, shades=shades, sites=known), kept=kept)
        if seen.failure is None:
            break
    if not kept:
        return None
    reference = laboratory.intervene({**interventions, **_keeping(kept)}, horizon).wait().recording
    if not _goes_on(reference):
        return None
    plans = [_plan(lost, observed, reference, Level.SAFE)]
    for site in sorted(kept) if len(kept) <= MOST_SITES else ():
        if len(kept) > 1:
            fewer = laboratory.intervene({**interventions, **_keeping(kept - {site})}, horizon).wait().recording
            if _goes_on(fewer):
                plans.append(_plan(replace(lost, kept=kept - {site}), observed, fewer, Level.UNSAFE))
    ways: tuple[str, ...] = ()
    if len(plans) > 1 or len(kept) > MOST_SITES:
        ways = SEVERAL
    elif _unfed(reference):
        ways = STILL_CUT
    if ways:
        plans[0] = replace(plans[0], standard=replace(plans[0].standard, level=Level.UNSAFE))
    diagnosis = Diagnosis(Cause.CUT_OFF, lost.failure, evidence(lost), ways)
    return Inquiry(diagnosis, tuple(plans), reference.progress - lost.failure.steps)


def would_do(laboratory: Laboratory, lost: Lost, horizon: Horizon) -> bool:
    """Whether the loss would have a graph already if nothing were detached on its way."""
    sites = frozenset(s.site for s in lost.on_path if s.reason in ("detached", "remade"))
    return bool(sites) and _goes_on(laboratory.intervene(_keeping(sites), horizon).wait().recording)


def _unfed(reference: Recording) -> bool:
    """Whether an optimizer steps that holds parameters which never get a gradient."""
    fed: dict[tuple[int, int], bool] = {}
    for step in reference.steps:
        for at, norm in enumerate(step.grads):
            fed[step.optimizer, at] = fed.get((step.optimizer, at), False) or norm is not None
    return not all(fed.values())


def _keeping(sites: frozenset[str]) -> Json:
    return {"undetach": sorted(sites), "retensor": sorted(sites)}


def _plan(lost: Lost, observed: Recording, reference: Recording, level: Level) -> Plan:
    standard = Standard(observed, reference, reference.progress, level=level)
    return Plan(smallest_first(KeepTheGraph().propose(lost)), standard)


def numbers(
    laboratory: Laboratory,
    observed: Recording,
    lost: Lost,
    settings: Settings,
    evidence: Callable[[Lost], tuple[Evidence, ...]],
) -> Inquiry | None:
    """The loss is made of Python numbers that tensors gave: a run in which they are off by a little tells which."""
    left = list(dict.fromkeys(lost.recording.left))
    if not left or not observed.failure_values:
        return None

    def changes(sites: list[str]) -> bool:
        seen = laboratory.shadow({"nudge": sites}).wait().recording
        return seen.failure_values != observed.failure_values

    if not changes([site for site, _ in left]):
        return None
    matter = [(s, call) for s, call in left if changes([s])] if 1 < len(left) <= MOST_LEFT else left
    if any(call in ("numpy", "__array__") for _, call in matter):
        return None
    told = [Evidence(f"the loss is made of a number that left torch here ({c})", _at(lost, s)) for s, c in matter]
    diagnosis = Diagnosis(Cause.CUT_OFF, lost.failure, (*evidence(lost), *told), CONSTANTS)
    candidates = smallest_first(StayInTorch().propose(lost, matter))
    progress = lost.failure.steps + settings.steps
    return Inquiry(diagnosis, (Plan(candidates, Standard(observed, None, progress)),), settings.steps)


def frozen(laboratory: Laboratory, observed: Recording, lost: Lost, held: Frozen, settings: Settings) -> Inquiry:
    """The optimizer holds frozen parameters: the reference is the run in which it thaws what it is given."""
    failure = lost.failure
    told = [Evidence(f"step {failure.steps + 1}: the loss of this backward has no graph", place(failure.chain))]
    told += [Evidence("parameters are frozen here", _at(lost, site)) for _, _, site in held.rows[:4]]
    made = [held.made[number] for number in sorted({row[0] for row in held.rows})]
    told += [Evidence("this optimizer holds frozen parameters alone", _at(lost, site)) for site in made]
    diagnosis = Diagnosis(Cause.FROZEN_PARAMETERS, failure, tuple(dict.fromkeys(told)), WHO_LEARNS)
    reference = laboratory.intervene({"thaw": made}, Horizon.beyond(lost.failure.steps, settings)).wait().recording
    if not _goes_on(reference):
        return Inquiry(diagnosis)
    standard = Standard(observed, reference, reference.progress)
    plan = Plan(smallest_first(ThawTrained().propose(lost)), standard)
    return Inquiry(diagnosis, (plan,), reference.progress - failure.steps)


def _at(lost: Lost, site: str) -> Span | None:
    return place(lost.recording.chain(site))
