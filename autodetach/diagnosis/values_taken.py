"""A call takes the values of a tensor and refuses its graph: harmless where they are only looked at, as a run can tell.

numpy is such a call, and a deep copy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from autodetach.diagnosis.mended import caught, mended_reference, nudge_size, reaches_training
from autodetach.diagnosis.plan import Inquiry, Plan
from autodetach.diagnosis.recording import Recording
from autodetach.diagnosis.siblings import WAYS_OUT
from autodetach.diagnosis.story import place
from autodetach.laboratory import Laboratory
from autodetach.model import Cause, Diagnosis, Evidence, FailureKind, Level
from autodetach.repairs.detach_for_copy import DetachForCopy
from autodetach.repairs.detach_for_numpy import DetachForNumpy
from autodetach.repairs.mending import Mending
from autodetach.settings import Settings
from autodetach.source.book import SourceBook


@dataclass(frozen=True)
class _Taker:
    """What takes values, in words."""

    cause: Cause
    repair: DetachForNumpy
    refuses: str
    again: str
    feeds: str


TAKERS = {
    FailureKind.NUMPY_ON_GRAD: _Taker(
        Cause.VALUES_LEAVE_TORCH,
        DetachForNumpy(),
        "numpy cannot read a tensor with a graph",
        "numpy reads another one here",
        "the values that numpy gets feed the training: it goes otherwise when they are changed a little",
    ),
    FailureKind.DEEPCOPY_NON_LEAF: _Taker(
        Cause.GRAPH_COPIED,
        DetachForCopy(),
        "a tensor with a graph cannot be deep-copied",
        "another one is copied here",
        "the copied values feed the training: it goes otherwise when they are changed a little",
    ),
}


def inquire(laboratory: Laboratory, observed: Recording, book: SourceBook, settings: Settings) -> Inquiry:
    """The reference is the run in which the call gets the values of detached tensors."""
    failure = observed.failure
    assert failure is not None
    taker = TAKERS[failure.kind]
    reference, horizon, standard = mended_reference(laboratory, observed, failure.kind, settings)
    mending = Mending(failure, reference, book, caught(observed))
    diagnosis = Diagnosis(taker.cause, failure, _evidence(mending, taker), WAYS_OUT[failure.kind])
    if reference.failure is not None or reference.how == "error":
        return Inquiry(diagnosis)
    size = nudge_size(standard.spread)
    nudged = laboratory.mended(failure.kind, horizon, nudge=sorted(mending.sites), nudge_size=size).wait().recording
    if reaches_training(reference, nudged, standard.spread):
        standard = replace(standard, level=Level.UNSAFE)
        told = Evidence(taker.feeds, place(failure.chain))
        diagnosis = replace(diagnosis, evidence=(*diagnosis.evidence, told))
    watched = laboratory.mended(failure.kind, horizon, watch=mending.values)
    mending = replace(mending, followed=watched.wait().recording)
    candidates = sorted(taker.repair.propose(mending), key=lambda c: (c.changed_lines, c.changed_tokens, c.preference))
    return Inquiry(diagnosis, (Plan(tuple(candidates), standard),), reference.progress - failure.steps)


def _evidence(mending: Mending, taker: _Taker) -> tuple[Evidence, ...]:
    failure = mending.failure
    told = [Evidence(f"step {failure.steps + 1}: {taker.refuses}", place(failure.chain))]
    for site, some in mending.sites.items():
        name = next((f"`{n}`" for each in some for n, structure in each.names if structure == "tensor"), "the tensor")
        made = place(mending.recording.chain(some[0].made))
        if made is not None:
            told.append(Evidence(f"{name} was made here, with its graph", made))
        read = place(mending.recording.chain(site))
        if read is not None and read != place(failure.chain):
            told.append(Evidence(taker.again, read))
    return tuple(dict.fromkeys(told))[:8]
