"""``retain_graph=True`` that hides a fault: the program runs, and differentiates at weights it no longer has."""

from __future__ import annotations

from dataclasses import dataclass

from autodetach.diagnosis.recording import Recording
from autodetach.diagnosis.story import place
from autodetach.laboratory import Horizon, Laboratory

STEPS = 24


@dataclass(frozen=True)
class Hidden:
    """``failing`` is the run in which no graph is kept; ``note`` says what was seen in the run as it is."""

    failing: Recording
    note: str


def look(laboratory: Laboratory, observed: Recording) -> Hidden | None:
    """What a kept graph hides in a program that runs without error; None where nothing is hidden.

    Nothing is where the graph is used again before the weights below it are updated, as by two losses of one step.
    """
    if not any(b.retain and not b.create and b.call == "backward" for b in observed.backwards):
        return None
    horizon = Horizon(most=STEPS)
    seen = laboratory.observe(horizon, watch_weights=True).wait().recording
    first = next((b for b in seen.backwards if b.outdated is not None), None)
    if first is None:
        return None
    failing = laboratory.intervene({"let_go": True}, horizon).wait().recording
    if failing.failure is None:
        return None
    made, back = place(seen.chain(first.outdated)), place(seen.chain(first.site))
    note = (
        "retain_graph=True hides a fault: "
        + (f"the backward in {back.place}" if back else "a backward")
        + " goes through what was computed "
        + (f"in {made.place} " if made else "")
        + "from weights that have been updated since, and its gradients are not those of the weights there are"
    )
    return Hidden(failing, note)
