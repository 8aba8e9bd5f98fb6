"""Is a composed case what it claims? Its broken program must fail, its repairs must train, and train alike."""

from __future__ import annotations

from dataclasses import dataclass

import case as cases
from check import failing_place
from judge import compare

from .compose import Composed
from .forge import Forge

MORE_STEPS = 3
"""Optimizer steps that the healthy program makes at least beyond the failure."""


class Unfit(Exception):
    """The program does not show the fault, or its repair is none; the message says which."""


@dataclass(frozen=True)
class Proven:
    """A case whose programs were run."""

    composed: Composed
    error: str
    fails_at: str
    folders: dict[str, dict[str, bytes]]


def prove(composed: Composed, forge: Forge) -> Proven:
    """Run all folders of the case.

    Raises:
        Unfit: the broken program runs, or fails otherwise; or a repair does not run to its end.
    """
    entry, args = composed.entry, composed.args
    losses = composed.draft.judge_losses
    broken = forge.run(composed.folders["before"], entry, args)
    said = broken.trajectory["error"] or ""
    error = next((kind for kind, wording in cases.WORDINGS.items() if wording in said), "")
    if not error:
        raise Unfit(f"before/ does not fail: {said[:200]}" if said else "before/ runs")
    fails_at = failing_place(broken.stderr, cases.WORDINGS[error], broken.folder)
    if not fails_at:
        raise Unfit("before/ fails at no line of its own")
    healthy = forge.run(composed.folders["after"], entry, args)
    if not healthy.trajectory["ended"]:
        raise Unfit(f"after/ fails: {healthy.trajectory['error']}")
    length = "backwards" if losses else "steps"
    if len(healthy.trajectory[length]) < len(broken.trajectory[length]) + MORE_STEPS:
        raise Unfit("after/ is too short")
    numbers = [v for step in healthy.trajectory["steps"] for v in step["params"]]
    if any(v != v or abs(v) > 1e4 for v in numbers):
        raise Unfit("after/ diverges")
    if not any(step["grads"] and any(step["grads"]) for step in healthy.trajectory["steps"]) and not losses:
        raise Unfit("after/ learns nothing")
    folders = {name: composed.folders[name] for name in ("before", "after")}
    for name, files in composed.folders.items():
        if name in folders:
            continue
        other = forge.run(files, entry, args)
        differs = compare(other.trajectory, healthy.trajectory, losses)
        if not other.trajectory["ended"]:
            raise Unfit(f"{name}/ fails: {other.trajectory['error']}")
        if differs and not composed.draft.meanings_differ:
            raise Unfit(f"{name}/ against after/: {'; '.join(differs)}")
        folders[name] = files
    return Proven(composed, error, fails_at, folders)
