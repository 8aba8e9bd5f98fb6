"""The other autograd errors: what happened, and the ways out with what each means. They are explained, not patched:
the program alone does not say which way was meant."""

from __future__ import annotations

from math import prod

from autodetach.diagnosis.plan import Inquiry, Plan
from autodetach.diagnosis.recording import Recording
from autodetach.diagnosis.story import place
from autodetach.model import Cause, Diagnosis, Evidence, FailureKind, Level
from autodetach.repairs.reduce_loss import ReduceLoss
from autodetach.settings import Settings
from autodetach.source.book import SourceBook
from autodetach.verification.standard import Standard

WHAT = {
    FailureKind.UNUSED_INPUT: "a gradient is asked for with respect to a tensor that the outputs do not depend on",
    FailureKind.LEAF_IN_PLACE: "a tensor that is to be learned is overwritten while gradients are recorded",
    FailureKind.NUMPY_ON_GRAD: "a tensor with a graph is handed to numpy, which knows nothing of graphs",
    FailureKind.DEEPCOPY_NON_LEAF: "a tensor that was computed, not created, is deep-copied; a graph cannot be",
    FailureKind.NON_SCALAR_ROOT: "backward is called on a tensor of several values without saying how to weigh them",
    FailureKind.NO_GRAD_FN: "backward is called on a tensor that has no graph",
}
WAYS_OUT = {
    FailureKind.UNUSED_INPUT: (
        "if the output should depend on it, look where the path is cut: a detach(), a new tensor of its values, "
        "or requires_grad_() called after the output was computed",
        "if it may not depend on it, pass allow_unused=True and treat the None that comes back as zero",
    ),
    FailureKind.LEAF_IN_PLACE: (
        "if this is an update by hand or an initialisation, do it under torch.no_grad()",
        "if it is part of the computation, write the result to a new name: x = x + y instead of x += y",
    ),
    FailureKind.NUMPY_ON_GRAD: (
        "if the values are only looked at (printed, plotted, measured), call .detach() before .numpy()",
        "if a loss is computed from what numpy returns, do that computation in torch: through numpy nothing is learned",
    ),
    FailureKind.DEEPCOPY_NON_LEAF: (
        "copy the values, x.detach().clone(), if a snapshot is wanted",
        "store x.detach() on the module: a module that holds a computed tensor as an attribute cannot be copied",
    ),
    FailureKind.NON_SCALAR_ROOT: (
        "reduce the loss first: .mean() keeps the step size whatever the batch, .sum() lets it grow with the batch",
        "pass gradient=... to backward if each value has a weight of its own",
    ),
}


def explained(observed: Recording, book: SourceBook, settings: Settings) -> Inquiry:
    """The diagnosis of a failure that no reference run tells anything about."""
    failure = observed.failure
    assert failure is not None
    where = place(failure.chain)
    what = WHAT.get(failure.kind, failure.message)
    evidence = [Evidence(f"after {failure.steps} steps: {what}", where)]
    ways = WAYS_OUT.get(failure.kind, ())
    if failure.kind is not FailureKind.NON_SCALAR_ROOT:
        return Inquiry(Diagnosis(Cause.UNKNOWN, failure, tuple(evidence), ways))
    for shape in observed.failure_shapes[:1]:
        evidence.append(Evidence(f"it has the shape {' x '.join(map(str, shape))}: {prod(shape)} values", where))
    diagnosis = Diagnosis(Cause.NOT_A_NUMBER, failure, tuple(evidence), ways)
    standard = Standard(observed, None, failure.steps + settings.steps, level=Level.DISPLAY_ONLY)
    return Inquiry(diagnosis, (Plan(tuple(ReduceLoss().propose(book, failure)), standard),))
