"""The strongest mechanism that really works here."""

from __future__ import annotations

import sys

from autodetach.errors import RefusedError, UsageError
from autodetach.isolation.bubblewrap import Bubblewrap
from autodetach.isolation.interface import Mechanism
from autodetach.isolation.landlock import Landlock
from autodetach.isolation.none import Unconfined

WANTED = ("auto", "bubblewrap", "landlock", "none", "require")


def known() -> tuple[Mechanism, ...]:
    """All mechanisms but none, strongest first."""
    return (Bubblewrap(), Landlock()) if sys.platform.startswith("linux") else ()


def choose(wanted: str = "auto") -> Mechanism:
    """``auto`` takes the strongest that works, ``require`` refuses to go on with none, a name takes that one.

    Raises RefusedError if what was asked for does not work here, UsageError for a name that is none.
    """
    if wanted not in WANTED:
        raise UsageError(f"unknown isolation {wanted!r}; one of {', '.join(WANTED)}")
    if wanted == "none":
        return Unconfined()
    reasons = []
    for mechanism in known():
        if wanted in ("auto", "require", mechanism.name):
            reason = mechanism.probe()
            if reason is None:
                return mechanism
            reasons.append(f"{mechanism.name}: {reason}")
    if wanted == "auto":
        return Unconfined()
    raise RefusedError("no isolation to be had: " + ("; ".join(reasons) or f"{wanted} is not known on this system"))
