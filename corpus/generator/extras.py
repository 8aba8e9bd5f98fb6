"""Things that healthy programs do besides, and that a repair must leave alone: records, bests, a second state."""

from __future__ import annotations

from dataclasses import replace

from .axes import Axes, Impossible
from .draft import Draft, assigned

_WITH_ECHO = ("recurrent", "kept", "built-once")


def enrich(draft: Draft, axes: Axes) -> Draft:
    """The draft with the extras of its axes that go with any model; the others are the kit's."""
    setup, forward, update = list(draft.setup), list(draft.forward), list(draft.update)
    if "echo" in axes.extras:
        if axes.cause not in _WITH_ECHO or "out" not in assigned(forward):
            raise Impossible("no output to keep")
        setup.append("$echo = None")
        forward += ["if $echo is not None:", "    $loss = $loss + 0.02 * F.mse_loss($out, $echo)"]
        update.append("$echo = $out.detach()")
    if "history" in axes.extras:
        setup.append("$record = []")
        update.append(f"$record.append({draft.value})")
    if "best" in axes.extras:
        setup.append('$best = float("inf")')
        update += [f"if {draft.value} < $best:", f"    $best = {draft.value}"]
    return replace(draft, setup=setup, forward=forward, update=update)
