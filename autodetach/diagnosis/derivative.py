"""``autograd.grad`` with respect to a tensor that the graph does not know: never marked, late, cut off, or a copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from autodetach.diagnosis.plan import Inquiry, Plan
from autodetach.diagnosis.recording import Input, Recording
from autodetach.diagnosis.siblings import WAYS_OUT
from autodetach.diagnosis.story import place
from autodetach.laboratory import Horizon, Laboratory
from autodetach.model import Cause, Diagnosis, Evidence, FailureKind
from autodetach.repairs.interface import smallest_first
from autodetach.repairs.mark_input import Derivative, MarkInput
from autodetach.settings import Settings
from autodetach.source.book import SourceBook
from autodetach.verification.criteria import spread
from autodetach.verification.standard import Standard

ROUNDS = 6
PART_OF_IT = (
    "take the derivative with respect to the very tensor that the output was computed from, and then the part of the "
    "gradient that is wanted; or compute the output from the parts: x, t = points.T; u = net(torch.stack([x, t], 1))",
)
KINDS = (FailureKind.UNUSED_INPUT, FailureKind.NO_GRAD_FN)


def inquire(laboratory: Laboratory, observed: Recording, book: SourceBook, settings: Settings) -> Inquiry | None:
    """The reference is the run in which each input requires gradients where it is first read.

    None where the failure is no matter of inputs: something else cut the graph.
    """
    failure = observed.failure
    assert failure is not None
    horizon = Horizon.beyond(failure.steps, settings)
    needs: dict[tuple[str, int], tuple[str, Input]] = {}
    seen = laboratory.traced({}).wait().recording
    marked: dict[Any, Any] = {}
    for _ in range(ROUNDS):
        fresh = {(seen.failure_site, i.index): i for i in seen.inputs if not (i.marked and i.used)}
        if seen.failure is None or seen.failure.kind not in KINDS or not fresh or fresh.keys() <= needs.keys():
            break
        needs.update({key: (seen.failure_site, each) for key, each in fresh.items()})
        if not all(_mendable(each) for each in fresh.values()):
            break
        sites, rows = seen.sites, {(m.site, m.place): m for m in seen.marked}
        seen = laboratory.traced(_interventions(each for _, each in needs.values()), horizon).wait().recording
        marked.update(rows)
        seen = replace(seen, sites={**sites, **seen.sites})
    if not needs:
        return None
    lost = tuple(needs.values())
    if failure.kind is FailureKind.NO_GRAD_FN and not all(_mendable(each) and not each.cuts for _, each in lost):
        return None
    never = all(each.read is not None and not each.cuts and not each.marked for _, each in lost)
    cause = Cause.INPUT_UNMARKED if never else Cause.INPUT_UNUSED
    apart = any(each.read is None and each.twin is not None and not each.twin.same for _, each in lost)
    ways = (*(PART_OF_IT if apart else ()), *WAYS_OUT[FailureKind.UNUSED_INPUT])
    diagnosis = Diagnosis(cause, failure, _evidence(seen, observed, lost), ways)
    if seen.failure is not None or seen.how == "error" or not (seen.steps or seen.backwards):
        return Inquiry(diagnosis)
    derivative = Derivative(failure, seen, book, lost)
    candidates = smallest_first(MarkInput().propose(derivative))
    standard = Standard(observed, seen, seen.progress, spread(observed, seen, failure.steps))
    return Inquiry(diagnosis, (Plan(candidates, standard),), seen.progress - failure.steps)


def _mendable(need: Input) -> bool:
    """Whether marking it, opening its way, or taking its twin would let the derivative reach it."""
    if need.read is not None:
        return True
    return need.twin is not None and need.twin.same and (need.twin.marked or need.twin.read is not None)


def _interventions(needs: Any) -> dict[str, Any]:
    mark, keep, swap = set(), set(), False
    for need in needs:
        keep |= set(need.cuts)
        if need.read is not None:
            if not (need.marked and need.cuts):
                mark.add(need.read)
        elif need.twin is not None:
            swap = True
            if not need.twin.marked and need.twin.read is not None:
                mark.add(need.twin.read)
    return {
        "mark": [list(reading) for reading in sorted(mark)],
        "undetach": sorted(keep),
        "retensor": sorted(keep),
        "swap": swap,
    }


def _evidence(seen: Recording, observed: Recording, needs: tuple[tuple[str, Input], ...]) -> tuple[Evidence, ...]:
    failure = observed.failure
    assert failure is not None
    told = [Evidence(f"step {failure.steps + 1}: this derivative does not reach its input", place(failure.chain))]
    for site, need in needs:
        where = place(seen.chain(site))
        if where is not None and where != place(failure.chain):
            told.append(Evidence("nor does this one", where))
        made = place(seen.chain(need.maker))
        if made is not None:
            told.append(Evidence("the input was made here", made))
        if need.read is not None:
            words = "it is first read here, and does not require a gradient by then"
            told.append(Evidence(words if not need.cuts else "it is read here", place(seen.chain(need.read[0]))))
        elif need.twin is not None and need.twin.read is not None:
            words = "with the same values" if need.twin.same else "of which this input is computed, too"
            read = place(seen.chain(need.twin.read[0]))
            told.append(Evidence(f"the output was computed from another tensor here, {words}", read))
        if need.marked_at is not None and not need.used and not need.cuts:
            told.append(Evidence("it is told to require a gradient here, too late", place(seen.chain(need.marked_at))))
        told += [Evidence("the way from it is cut here", place(seen.chain(cut))) for cut in need.cuts]
    return tuple(dict.fromkeys(told))[:8]
