"""What an inquiry ends with: a diagnosis, candidates worth trying, and what they are held to."""

from __future__ import annotations

from dataclasses import dataclass

from autodetach.model import Candidate, Diagnosis
from autodetach.verification.standard import Standard


@dataclass(frozen=True)
class Plan:
    """Candidates, best first, and what each has to equal."""

    candidates: tuple[Candidate, ...]
    standard: Standard


@dataclass(frozen=True)
class Inquiry:
    diagnosis: Diagnosis
    plans: tuple[Plan, ...] = ()
    steps_proved: int = 0
    notes: tuple[str, ...] = ()
