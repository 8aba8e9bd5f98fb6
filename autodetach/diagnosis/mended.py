"""Runs in which an error of a single call is mended on the fly, and what they tell."""

from __future__ import annotations

from typing import Any

from autodetach.diagnosis.recording import Recording
from autodetach.laboratory import Horizon, Laboratory
from autodetach.model import FailureKind
from autodetach.settings import Settings
from autodetach.verification.criteria import Spread, spread
from autodetach.verification.standard import Standard

LEAST_STEPS = 3
SECONDS = 4.0
"""How long a reference run may go on in the hope of reaching the program's end."""


def mended_reference(
    laboratory: Laboratory, observed: Recording, kind: FailureKind, settings: Settings, **interventions: Any
) -> tuple[Recording, Horizon, Standard]:
    """The run beyond the failure, its horizon, and what candidates are held to by it.

    Such errors come up again in other places: a program that is soon over is run to its end.
    """
    failure = observed.failure
    assert failure is not None
    least = failure.steps + max(settings.steps, LEAST_STEPS)
    horizon = Horizon(least=least, seconds=SECONDS, live_from=failure.steps)
    reference = laboratory.mended(kind, horizon, **interventions).wait().recording
    ended = reference.how == "exit"
    horizon = Horizon(most=reference.progress + ended, live_from=failure.steps)
    standard = Standard(
        observed, reference, reference.progress, spread(observed, reference, failure.steps), to_the_end=ended
    )
    return reference, horizon, standard


def caught(observed: Recording) -> frozenset[str]:
    """Sites of errors that the broken program met and dealt with."""
    return frozenset(observed.failed_sites[:-1]) - {observed.failure_site}


def nudge_size(measured: Spread) -> float:
    """So little that no decision goes otherwise (which action is drawn, say), if runs are the same to the bit: what
    is left is a dependence that has a derivative. Where they differ, so much that it shows."""
    return 2.0**-16 if measured.deterministic else 2.0**-5


def reaches_training(reference: Recording, nudged: Recording, measured: Spread) -> bool:
    """Whether a run whose values were changed a little on their way out of torch trains otherwise for it."""
    if len(reference.steps) != len(nudged.steps) or len(reference.backwards) != len(nudged.backwards):
        return True
    if nudged.failure is not None or nudged.how != reference.how:
        return True
    return spread(reference, nudged, max(reference.progress, 1)).relative > 10 * measured.relative
