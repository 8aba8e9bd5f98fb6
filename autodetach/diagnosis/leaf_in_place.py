"""A leaf is written in place while gradients are recorded: an update, an initialisation, or a flag too many."""

from __future__ import annotations

from dataclasses import replace

from autodetach.diagnosis.mended import caught, mended_reference
from autodetach.diagnosis.plan import Inquiry, Plan
from autodetach.diagnosis.recording import Mended, Recording
from autodetach.diagnosis.siblings import WAYS_OUT
from autodetach.diagnosis.story import place
from autodetach.laboratory import Laboratory
from autodetach.model import Candidate, Cause, Diagnosis, Evidence, FailureKind, Level
from autodetach.repairs.drop_requires_grad import without_flag
from autodetach.repairs.interface import candidate, smallest_first
from autodetach.repairs.mending import Mending
from autodetach.repairs.write_without_grad import WriteWithoutGrad
from autodetach.settings import Settings
from autodetach.source.book import SourceBook

CONSTANT_OR_PART = (
    "if the values written are to stay (weights that are set, pruned or clipped), do it under torch.no_grad()",
    "if the gradient is to flow through the operation, write the result to a new name: w = self.weight * mask, and use "
    "that instead of the parameter",
)


def inquire(laboratory: Laboratory, observed: Recording, book: SourceBook, settings: Settings) -> Inquiry:
    """The reference is the run in which each writing is done with grad mode off, or into a leaf that is none."""
    failure = observed.failure
    assert failure is not None
    reference, _, standard = mended_reference(laboratory, observed, FailureKind.LEAF_IN_PLACE, settings)
    mending = Mending(failure, reference, book, caught(observed))
    mended = [each for some in mending.sites.values() for each in some]
    with_graph = any(each.graph for each in mended)
    spurious = all(_is_data(each, reference) for each in mended)
    cause = Cause.SPURIOUS_LEAF if with_graph and spurious else Cause.LEAF_WRITTEN
    ways = CONSTANT_OR_PART if any(each.forward for each in mended) else WAYS_OUT[FailureKind.LEAF_IN_PLACE]
    diagnosis = Diagnosis(cause, failure, _evidence(mending), ways)
    if with_graph and spurious:
        made = sorted({each.leaf.site for each in mended if each.leaf is not None and each.leaf.site is not None})
        reference, _, standard = mended_reference(laboratory, observed, failure.kind, settings, unflag=made)
    if reference.failure is not None or reference.how == "error" or not mended:
        return Inquiry(diagnosis)
    if not spurious and not all(_meant_once(some) for some in mending.sites.values()):
        standard = replace(standard, level=Level.UNSAFE)
    elif with_graph and not spurious:
        return Inquiry(diagnosis)  # somebody reads the gradient of a leaf that others are written into
    candidates = [] if with_graph else [*WriteWithoutGrad().propose(mending)]
    candidates += _unflagged(mending) if spurious else []
    return Inquiry(diagnosis, (Plan(smallest_first(candidates), standard),), reference.progress - failure.steps)


def _is_data(mended: Mended, reference: Recording) -> bool:
    """Nobody optimises the leaf, and nobody reads its gradient."""
    leaf = mended.leaf
    if leaf is None or leaf.holders or leaf.parameter or leaf.site is None or mended.from_grad:
        return False
    return leaf.site not in reference.looked


def _meant_once(some: tuple[Mended, ...]) -> bool:
    """Whether what is written is no part of a computation: an update from the gradient, an initialisation before
    anything was learned, or a change between an update and the next forward pass."""
    if any(each.graph for each in some):
        return False
    update = any(each.from_grad for each in some)
    outside = not any(each.forward for each in some)
    return update or (outside and (all(each.early for each in some) or all(each.fresh for each in some)))


def _unflagged(mending: Mending) -> list[Candidate]:
    sites = {each.leaf.site for some in mending.sites.values() for each in some if each.leaf is not None}
    edits = [without_flag(mending, site) for site in sites if site is not None]
    found = [edit for edit in edits if edit is not None]
    if not found or len(found) < len(edits):
        return []
    frames = [mending.frame(site) for site in sites]
    lines = ", ".join(sorted({str(f.span.line) for f in frames if f is not None}))
    patch = candidate(mending.book, "drop-requires-grad", f"drop requires_grad in line {lines}", found)
    return [patch] if patch is not None else []


def _evidence(mending: Mending) -> tuple[Evidence, ...]:
    failure = mending.failure
    told = [Evidence(f"step {failure.steps + 1}: a leaf is overwritten here", place(failure.chain))]
    for site, some in mending.sites.items():
        leaf = some[0].leaf
        name = next((f"`{n}`" for n, structure in some[0].names if structure == "tensor"), "the tensor")
        made = place(mending.recording.chain(leaf.site if leaf is not None else None))
        if made is not None:
            told.append(Evidence(f"{name} was made to require a gradient here", made))
        where = place(mending.recording.chain(site))
        if any(each.from_grad for each in some):
            told.append(Evidence("what is written is computed from a gradient: an update by hand", where))
        elif any(each.graph for each in some):
            told.append(Evidence("what is written has a graph of its own, which the leaf cannot take up", where))
        elif any(each.forward for each in some):
            told.append(Evidence("it is written within a forward pass", where))
        elif all(each.early for each in some):
            told.append(Evidence("it is written before the first backward: an initialisation", where))
    return tuple(dict.fromkeys(told))[:8]
