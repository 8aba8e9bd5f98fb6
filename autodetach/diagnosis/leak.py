"""A graph that grows from step to step without any error: what keeps it, and the patches that let it go."""

from __future__ import annotations

from autodetach.diagnosis.plan import Inquiry, Plan
from autodetach.diagnosis.recording import Leak, Recording
from autodetach.diagnosis.story import place
from autodetach.laboratory import Horizon, Laboratory
from autodetach.model import Cause, Diagnosis, Evidence, Failure, FailureKind
from autodetach.repairs.detach_kept import DetachKept, Kept
from autodetach.repairs.interface import smallest_first
from autodetach.source.book import SourceBook
from autodetach.verification.criteria import grows, spread
from autodetach.verification.standard import Standard

LEAK_STEPS = 40
WAYS_OUT = (
    "if the values are only looked at, keep loss.item() or x.detach() instead of the tensor",
    "if the graph is wanted later (one backward for many steps), it has to grow until then: nothing is wrong",
)


def inquire(laboratory: Laboratory, observed: Recording, book: SourceBook) -> Inquiry | None:
    """None where no graph grows. The reference is the program itself: a patch may only let go what nobody asks for."""
    horizon = Horizon(most=LEAK_STEPS, live_from=0)
    reference = laboratory.leaking(horizon).wait().recording
    if reference.failure is not None or not grows(reference.live):
        return None
    leaks = reference.leaks
    watch = dict.fromkeys([leak.kind for leak in leaks] + [kind for leak in leaks for kind, _ in leak.parents])
    followed = laboratory.leaking(horizon, watch=list(watch)).wait().recording if leaks else reference
    kept = Kept(followed, book)
    (first, few), (last, many) = reference.live[0], reference.live[-1]
    failure = Failure(
        FailureKind.GROWTH,
        f"{few} live nodes after step {first}, {many} after step {last}",
        reference.chain(leaks[0].kind[0]) if leaks else (),
        reference.progress,
        len(reference.backwards),
    )
    diagnosis = Diagnosis(Cause.GRAPH_KEPT, failure, _evidence(kept, reference), WAYS_OUT)
    standard = Standard(
        observed, reference, reference.progress, spread(observed, reference, LEAK_STEPS), may_grow=False
    )
    candidates = smallest_first(DetachKept().propose(kept))
    return Inquiry(diagnosis, (Plan(candidates, standard),), reference.progress)


def _evidence(kept: Kept, reference: Recording) -> tuple[Evidence, ...]:
    told = []
    for leak in kept.leaks or reference.leaks:
        told.append(Evidence(_words(leak), place(reference.chain(leak.kind[0]))))
        stored = kept.store_of(leak)
        if stored is not None:
            told.append(Evidence("it is kept here", stored))
    return tuple(dict.fromkeys(told))[:8]


def _words(leak: Leak) -> str:
    if leak.count[1] > leak.count[0] + 1:
        return f"tensors made here pile up with their graphs: {leak.count[0]}, later {leak.count[1]}"
    return f"the graph of what is made here grows: {leak.nodes[0]} nodes, later {leak.nodes[1]}"
