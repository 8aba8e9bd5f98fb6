"""All remedies as one page, written from what each class says of itself: ``python -m autodetach.repairs.catalogue``."""

from __future__ import annotations

import inspect
from typing import Any

from autodetach.repairs import CUT_REPAIRS
from autodetach.repairs.backward_on_fresh_loss import BackwardOnFreshLoss
from autodetach.repairs.checkpoint_without_reentry import CheckpointWithoutReentry
from autodetach.repairs.clone_operand import CloneOperand
from autodetach.repairs.create_graph import CreateGraph
from autodetach.repairs.detach_for_copy import DetachForCopy
from autodetach.repairs.detach_for_numpy import DetachForNumpy
from autodetach.repairs.detach_kept import DetachKept
from autodetach.repairs.drop_cache import DropCache
from autodetach.repairs.drop_earlier_cure import DropEarlierCure
from autodetach.repairs.keep_graph import KeepTheGraph
from autodetach.repairs.mark_input import MarkInput
from autodetach.repairs.move_below_step import MoveBelowStep
from autodetach.repairs.move_into_loop import MoveIntoLoop
from autodetach.repairs.move_out_of_no_grad import MoveOutOfNoGrad
from autodetach.repairs.one_backward import KeepGraph, OneBackward
from autodetach.repairs.out_of_place import OutOfPlace
from autodetach.repairs.recompute_in_closure import RecomputeInClosure
from autodetach.repairs.reduce_loss import ReduceLoss
from autodetach.repairs.stay_in_torch import StayInTorch
from autodetach.repairs.thaw import ThawTrained
from autodetach.repairs.write_without_grad import WriteWithoutGrad

ALL: tuple[Any, ...] = (
    *CUT_REPAIRS,
    MoveIntoLoop(),
    DropCache(),
    OneBackward(),
    KeepGraph(),
    CreateGraph(),
    MoveOutOfNoGrad(),
    KeepTheGraph(),
    StayInTorch(),
    ThawTrained(),
    MarkInput(),
    CheckpointWithoutReentry(),
    CloneOperand(),
    OutOfPlace(),
    MoveBelowStep(),
    BackwardOnFreshLoss(),
    RecomputeInClosure(),
    DropEarlierCure(),
    DetachForNumpy(),
    DetachForCopy(),
    ReduceLoss(),
    WriteWithoutGrad(),
    DetachKept(),
)


def page() -> str:
    """The Markdown of ``docs/remedies.md``."""
    parts = [
        "# Remedies\n",
        "Each is proposed where the recording says that it fits, and printed only if the patched program passes\n"
        "every criterion. This page is made by `python -m autodetach.repairs.catalogue > docs/remedies.md`.\n",
    ]
    for repair in ALL:
        parts.append(f"## {repair.name}\n\n{inspect.getdoc(type(repair))}\n")
        for example in repair.examples:
            if example.after is None:
                parts.append(f"{example.title[0].upper()}{example.title[1:]}:\n\n{_block(example.before)}")
            else:
                before, after = _block(example.before), _block(example.after)
                parts.append(f"Example, {example.title}:\n\n{before}\nbecomes\n\n{after}")
    return "\n".join(parts)


def _block(code: str) -> str:
    return f"```python\n{code.rstrip()}\n```\n"


if __name__ == "__main__":
    print(page(), end="")
