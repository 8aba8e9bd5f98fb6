"""numpy asks for the values of a tensor with a graph: harmless where they are only looked at, which a run can tell."""

from __future__ import annotations

from dataclasses import replace

from autodetach.diagnosis.mended import caught, mended_reference, reaches_training
from autodetach.diagnosis.plan import Inquiry, Plan
from autodetach.diagnosis.recording import Recording
from autodetach.diagnosis.siblings import WAYS_OUT
from autodetach.diagnosis.story import place
from autodetach.laboratory import Laboratory
from autodetach.model import Cause, Diagnosis, Evidence, FailureKind, Level
from autodetach.repairs.detach_for_numpy import DetachForNumpy
from autodetach.repairs.mending import Mending
from autodetach.settings import Settings
from autodetach.source.book import SourceBook

FEEDS_BACK = "the values that numpy gets feed the training: it goes otherwise when they are changed a little"


def inquire(laboratory: Laboratory, observed: Recording, book: SourceBook, settings: Settings) -> Inquiry:
    """The reference is the run in which numpy gets the values of detached tensors."""
    failure = observed.failure
    assert failure is not None
    reference, horizon, standard = mended_reference(laboratory, observed, FailureKind.NUMPY_ON_GRAD, settings)
    mending = Mending(failure, reference, book, caught(observed))
    diagnosis = Diagnosis(
        Cause.VALUES_LEAVE_TORCH, failure, _evidence(mending, observed), WAYS_OUT[FailureKind.NUMPY_ON_GRAD]
    )
    if reference.failure is not None or reference.how == "error":
        return Inquiry(diagnosis)
    nudged = laboratory.mended(FailureKind.NUMPY_ON_GRAD, horizon, nudge=sorted(mending.sites)).wait().recording
    if reaches_training(reference, nudged, standard.spread):
        standard = replace(standard, level=Level.UNSAFE)
        told = Evidence(FEEDS_BACK, place(failure.chain))
        diagnosis = replace(diagnosis, evidence=(*diagnosis.evidence, told))
    else:
        diagnosis = replace(diagnosis, ways_out=())
    watched = laboratory.mended(FailureKind.NUMPY_ON_GRAD, horizon, watch=mending.values)
    mending = replace(mending, followed=watched.wait().recording)
    candidates = sorted(
        DetachForNumpy().propose(mending), key=lambda c: (c.changed_lines, c.changed_tokens, c.preference)
    )
    return Inquiry(diagnosis, (Plan(tuple(candidates), standard),), reference.progress - failure.steps)


def _evidence(mending: Mending, observed: Recording) -> tuple[Evidence, ...]:
    failure = mending.failure
    told = [Evidence(f"step {failure.steps + 1}: numpy cannot read a tensor with a graph", place(failure.chain))]
    for site, some in mending.sites.items():
        name = next((f"`{n}`" for each in some for n, structure in each.names if structure == "tensor"), "the tensor")
        made = place(mending.recording.chain(some[0].made))
        if made is not None:
            told.append(Evidence(f"{name} was made here, with its graph", made))
        read = place(mending.recording.chain(site))
        if read is not None and read != place(failure.chain):
            told.append(Evidence("numpy reads another one here", read))
    return tuple(dict.fromkeys(told))[:8]
