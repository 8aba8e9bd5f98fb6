"""What candidates are held to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from autodetach.diagnosis.recording import Recording
from autodetach.model import Level
from autodetach.verification import criteria
from autodetach.verification.criteria import Spread


@dataclass(frozen=True)
class Standard:
    """What candidates are held to.

    ``reference`` is the trajectory to be equalled, or None where no run can tell it; then ``fed`` names the parameters
    (optimizer, place) that every step has to feed, and the first step must be the broken program's.
    """

    broken: Recording
    reference: Recording | None
    progress: int
    spread: Spread = field(default_factory=Spread)
    fed: frozenset[tuple[int, int]] = frozenset()
    level: Level = Level.SAFE
    excuse_growth: bool = False
    """Whether the graph may grow where the reference's does: a leak that is not this fault's."""
    to_the_end: bool = False
    """Whether the reference ran to the program's own end, as the patched program then has to."""

    may_grow: bool = True
    """Whether a growth that the reference shows may be excused at all."""

    def tiers(self) -> tuple[Standard, ...]:
        """The strict standard first; where the reference itself grows, then the one that excuses it."""
        if self.may_grow and self.reference is not None and criteria.grows(self.reference.live):
            return (self, replace(self, excuse_growth=True))
        return (self,)
