"""No confinement: a fresh copy to work in, and the process tree ended with the run. Nothing more."""

from __future__ import annotations

from collections.abc import Sequence

from autodetach.isolation.interface import Policy, rest_of


class Unconfined:
    name = "none"
    enforces: tuple[str, ...] = ()
    not_enforced = rest_of(enforces)

    def probe(self) -> str | None:
        return None

    def command(self, argv: Sequence[str], policy: Policy) -> list[str]:
        return list(argv)
