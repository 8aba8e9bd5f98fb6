"""Backward is called on a tensor of several values: two ways to make one number of them, and what each would mean."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import libcst as cst

from autodetach.model import Candidate, Failure, Level
from autodetach.repairs.interface import Example, candidate
from autodetach.repairs.mending import short
from autodetach.source.book import SourceBook
from autodetach.source.edits.detach import append_call
from autodetach.source.expression import Expression


class ReduceLoss:
    """``backward`` starts from one number. The mean and the sum differ by a factor, the learning rate's as it were.

    Which is meant the program does not say: both are shown, neither is called safe.
    """

    name: ClassVar[str] = "reduce-loss"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("a loss for each sample", "loss.backward()\n", "loss.mean().backward()\n"),
        Example("leave alone: values with weights of their own", "loss.backward(weights)\n", None),
    )

    def propose(self, book: SourceBook, failure: Failure) -> Iterable[Candidate]:
        frame = next((f for f in failure.chain if f.editable), None)
        call = book.expression(frame.span) if frame is not None else None
        if call is None or not isinstance(call.node, cst.Call) or not isinstance(call.node.func, cst.Attribute):
            return
        root = Expression(call.tree, call.node.func.value)
        if call.node.func.attr.value != "backward" or (call.node.args and call.node.args[0].keyword is None):
            return
        for how in ("mean", "sum"):
            edit = append_call(root, f".{how}()")
            if edit is not None:
                words = f"start from {short(root.code)}.{how}()"
                patch = candidate(
                    book,
                    self.name,
                    words,
                    [edit],
                    preference=int(how == "sum"),
                    same_values=False,
                    level=Level.DISPLAY_ONLY,
                )
                if patch is not None:
                    yield patch
