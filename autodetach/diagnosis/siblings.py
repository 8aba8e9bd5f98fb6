"""The other autograd errors: what happened, and the ways out with what each means. They are explained, not patched:
the program alone does not say which way was meant."""

from __future__ import annotations

from autodetach.diagnosis.plan import Inquiry
from autodetach.diagnosis.recording import Recording
from autodetach.diagnosis.story import place
from autodetach.model import Cause, Diagnosis, Evidence, FailureKind
from autodetach.source.book import SourceBook

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


def explained(observed: Recording, book: SourceBook) -> Inquiry:
    """The diagnosis of a failure that no reference run tells anything about."""
    failure = observed.failure
    assert failure is not None
    where = place(failure.chain)
    what = WHAT.get(failure.kind, failure.message)
    evidence = (Evidence(f"after {failure.steps} steps: {what}", where),)
    return Inquiry(Diagnosis(Cause.UNKNOWN, failure, evidence, WAYS_OUT.get(failure.kind, ())))
