"""Remedies, one a file."""

from autodetach.repairs.detach_accumulator import DetachAccumulator
from autodetach.repairs.detach_after_unpacking import DetachAfterUnpacking
from autodetach.repairs.detach_held import DetachHeld
from autodetach.repairs.detach_where_it_passes import DetachWhereItPasses
from autodetach.repairs.detach_written import DetachWritten
from autodetach.repairs.drop_requires_grad import DropRequiresGrad
from autodetach.repairs.empty_container import EmptyContainer
from autodetach.repairs.interface import CutRepair
from autodetach.repairs.rebind_before import RebindBefore
from autodetach.repairs.rebind_discarded_detach import RebindDiscardedDetach

CUT_REPAIRS: tuple[CutRepair, ...] = (
    DetachWhereItPasses(),
    DetachAfterUnpacking(),
    RebindDiscardedDetach(),
    DetachWritten(),
    DropRequiresGrad(),
    DetachAccumulator(),
    RebindBefore(),
    DetachHeld(),
    EmptyContainer(),
)
