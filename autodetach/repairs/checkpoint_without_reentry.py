"""Reentrant checkpointing drops the graph where no input requires gradients: ``use_reentrant=False``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from autodetach.model import Candidate
from autodetach.repairs.interface import Example, candidate
from autodetach.repairs.lost import Lost
from autodetach.source.edits.calls import set_keyword


class CheckpointWithoutReentry:
    """The parameters learn inside a checkpointed block whose inputs need no gradient.

    Reentrant checkpointing builds a graph only for inputs that require gradients; without reentry the block's own
    parameters count, too.
    """

    name: ClassVar[str] = "checkpoint-without-reentry"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "frozen embedding, trainable block",
            "h = checkpoint(block, h, use_reentrant=True)\n",
            "h = checkpoint(block, h, use_reentrant=False)\n",
        ),
    )

    def propose(self, lost: Lost) -> Iterable[Candidate]:
        edits, lines = [], []
        for site in dict.fromkeys(s.site for s in lost.because("checkpoint")):
            frames = lost.frames(site)
            call = lost.book.expression(frames[0].span) if frames else None
            edit = set_keyword(call, "use_reentrant", "False") if call is not None else None
            if edit is not None and edit not in edits:
                edits.append(edit)
                lines.append(str(frames[0].span.line))
        patch = candidate(lost.book, self.name, f"use_reentrant=False in line {', '.join(lines)}", edits)
        if patch is not None:
            yield patch
