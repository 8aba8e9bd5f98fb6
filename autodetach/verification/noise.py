"""Programs that differ from themselves run to run: how much, and what may still be told of a patch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from autodetach.diagnosis.plan import Inquiry
from autodetach.laboratory import Laboratory
from autodetach.model import Level, Rejected, Trial
from autodetach.verification.criteria import spread
from autodetach.verification.standard import Standard

COMPARING = frozenset({"same values", "same training", "same first step"})
FEWEST_STEPS = 3
"""Beyond the failure, in which the reference must be known well enough for anything to be called safe."""


def widened(laboratory: Laboratory, standard: Standard) -> Standard:
    """The standard with the spread of the run that it compares with, which is made once more.

    Where the two differ by more than tells a right patch from a wrong one, nothing can be safe by it.
    """
    known = standard.reference or standard.broken
    second = laboratory.again(known)
    if second is None:
        return replace(standard, level=Level.UNSAFE)
    measured = spread(known, second, known.progress)
    failed_at = standard.broken.failure.steps if standard.broken.failure else 0
    least = min(failed_at + FEWEST_STEPS, known.progress) if standard.reference is not None else 1
    lived = second.progress >= least and not second.death
    return replace(
        standard, spread=measured, level=standard.level if lived and measured.decides(least) else Level.UNSAFE
    )


def is_exact(inquiry: Inquiry) -> bool:
    """Whether no two runs of the program are known to differ."""
    return all(plan.standard.spread.deterministic for plan in inquiry.plans)


def may_explain(inquiry: Inquiry, trials: Iterable[Trial]) -> bool:
    """Whether a patch fell only because its run was not the one that it was compared with, to the bit."""
    return is_exact(inquiry) and any(
        isinstance(v, Rejected) and v.criterion in COMPARING for trial in trials for v in trial.verdicts
    )


def measured(laboratory: Laboratory, inquiry: Inquiry) -> Inquiry:
    """The inquiry with the spread of the runs that it compares with, and a note where there is one."""
    plans = tuple(replace(plan, standard=widened(laboratory, plan.standard)) for plan in inquiry.plans)
    notes = dict.fromkeys(filter(None, (in_words(plan.standard) for plan in plans)))
    return replace(inquiry, plans=plans, notes=(*inquiry.notes, *notes))


def in_words(standard: Standard) -> str:
    """What the reader has to know about the spread; empty where two runs are the same."""
    if standard.spread.deterministic:
        return ""
    training = standard.spread.training
    if not training:
        return f"two runs of the program have losses that differ by {standard.spread.relative:.1e}, and train the same"
    told = (
        f"two runs of the program differ by {standard.spread.relative:.1e} (after the first step by {training[0]:.1e})"
    )
    if standard.level is Level.SAFE:
        return f"{told}; the comparison allows for ten times that"
    return f"{told}: too much to tell a right patch from a wrong one, so none is called safe"
