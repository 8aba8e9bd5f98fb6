"""What repairs of a lost graph are told: the operations that lost it, and the files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from autodetach.diagnosis.recording import Recording, Shade
from autodetach.model import Failure, Frame
from autodetach.source.book import SourceBook
from autodetach.source.statement import Statement


@dataclass(frozen=True)
class Lost:
    """``recording`` is that of a shadow run: its shades lie between the failing root and the parameters."""

    failure: Failure
    recording: Recording
    book: SourceBook
    kept: frozenset[str] = frozenset()
    """Sites of detached or remade tensors whose graph the loss needs."""

    @cached_property
    def on_path(self) -> tuple[Shade, ...]:
        return tuple(s for s in self.recording.shades if s.on_path)

    def because(self, reason: str) -> tuple[Shade, ...]:
        return tuple(s for s in self.on_path if s.reason == reason)

    @property
    def to_keep(self) -> tuple[Shade, ...]:
        """The operations at those sites, one a site."""
        found = {s.site: s for s in self.recording.shades if s.reason in ("detached", "remade") and s.site in self.kept}
        return tuple(found.values())

    def frames(self, site: str | None) -> tuple[Frame, ...]:
        return tuple(f for f in self.recording.chain(site) if f.editable)

    def statements(self, site: str | None) -> Iterable[Statement]:
        for frame in self.frames(site):
            statement = self.book.statement(frame.span)
            if statement is not None:
                yield statement

    @cached_property
    def switches(self) -> dict[str, tuple[Shade, ...]]:
        """Each place that switched grad mode off, with the operations on the loss's way that ran so."""
        found: dict[str, list[Shade]] = {}
        for shade in self.on_path:
            if shade.switch is not None and not shade.grad and shade.reason != "checkpoint":
                found.setdefault(shade.switch, []).append(shade)
        return {switch: tuple(shades) for switch, shades in found.items()}
