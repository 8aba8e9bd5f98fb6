"""The sentences that every format shares: what each failure is called, and what each cause means."""

from __future__ import annotations

from autodetach.model import Cause, FailureKind, Outcome
from autodetach.report.plain import neutral

FAILURES: dict[FailureKind, str] = {
    FailureKind.SECOND_BACKWARD: "backward ran through a graph a second time",
    FailureKind.IN_PLACE: "backward needs a value that was changed after it was saved",
    FailureKind.NO_GRAD_FN: "backward was called on a loss that has no graph",
    FailureKind.UNUSED_INPUT: "a gradient was asked for a tensor that the result does not depend on",
    FailureKind.LEAF_IN_PLACE: "a leaf that requires a gradient was changed in place",
    FailureKind.NUMPY_ON_GRAD: "numpy was asked to read a tensor that carries a graph",
    FailureKind.DEEPCOPY_NON_LEAF: "a tensor that carries a graph was deep-copied",
    FailureKind.NON_SCALAR_ROOT: "backward was called on a tensor of more than one number",
    FailureKind.GROWTH: "the graph grows from step to step",
}

CAUSES: dict[Cause, str] = {
    Cause.CARRIED_STATE: (
        "A value that one step hands to the next still carries the graph that made it. The first "
        "backward freed that graph; the next one walks into it again."
    ),
    Cause.ACCUMULATED_LOSS: (
        "A sum of losses keeps growing and is backpropagated each time, so every backward walks again "
        "through the terms that earlier ones have already used up."
    ),
    Cause.BUILT_ONCE: (
        "A value is computed once, from parameters that should learn, and used in every step. Its graph "
        "serves a single backward; the computation belongs where each step can make it anew."
    ),
    Cause.DATA_WITH_GRAPH: (
        "A value that is meant as data (a target, an advantage, a feature) was made with a graph, and "
        "every step that reads it walks back into that graph."
    ),
    Cause.SPURIOUS_LEAF: (
        "A tensor that no optimizer holds was told to require a gradient. That ties the steps together "
        "through a graph whose gradient nobody reads."
    ),
    Cause.GRAD_MODE_OFF: (
        "The forward pass ran while gradients were switched off, so the loss has no graph to go back through."
    ),
    Cause.SHARED_GRAPH: (
        "Two losses of one step share a part of their graph. The first backward frees that part before "
        "the second one needs it."
    ),
    Cause.DISCARDED_GRADIENT: (
        "Two losses share a part of the graph, and what the first one sends into it is thrown away "
        "before any optimizer uses it. The first loss should not reach into that part at all."
    ),
    Cause.FIRST_ORDER_GRAD: (
        "A gradient was taken without create_graph=True and then used in a loss. Its own graph was not "
        "kept, so there is nothing to differentiate a second time."
    ),
    Cause.IN_PLACE_CHANGE: ("A value that backward needs was overwritten between the forward pass and backward."),
    Cause.STALE_ROOT: (
        "backward was called on a loss that was already backpropagated, or that was kept from an earlier step."
    ),
    Cause.CHECKPOINT: (
        "Activation checkpointing ran the forward pass again during backward, and what it found then did not fit."
    ),
    Cause.NOT_DIFFERENTIABLE: (
        "The way from the parameters to the loss passes through an operation that has no gradient."
    ),
    Cause.VALUES_LEAVE_TORCH: (
        "numpy works on plain values and knows nothing of graphs, so torch refuses to hand it a tensor that "
        "requires a gradient."
    ),
    Cause.LEAF_WRITTEN: (
        "A tensor that gradients are collected for was overwritten while operations were being recorded. An update "
        "or an initialisation by hand is no part of the computation and must not be recorded."
    ),
    Cause.GRAPH_COPIED: (
        "A copy was asked for of something that holds a computed tensor, with its graph. Values can be copied, a "
        "graph cannot."
    ),
    Cause.INPUT_UNMARKED: (
        "A derivative was asked for with respect to an input that was never marked: what is not to require a "
        "gradient before the forward pass leaves no trace in the graph."
    ),
    Cause.INPUT_UNUSED: (
        "A derivative was asked for with respect to a tensor that the result was not computed from: another tensor "
        "with the same values was."
    ),
    Cause.GRAPH_KEPT: (
        "Nothing fails, but tensors are kept with the graphs that made them, step after step, although nobody asks for "
        "those any more."
    ),
    Cause.CUT_OFF: (
        "The program itself cuts the loss off from what it was computed from: by a detach, or by making a new tensor "
        "of its values."
    ),
    Cause.FROZEN_PARAMETERS: (
        "Nothing that the loss was computed from requires a gradient: the parameters that the optimizer holds "
        "are frozen."
    ),
    Cause.NOT_A_NUMBER: (
        "Backward starts from a single number; a tensor of several values has to be reduced to one, or weighed, first."
    ),
    Cause.UNKNOWN: (
        "The recording shows where the graph was used twice, but not which of the known mistakes led there."
    ),
}

NOTHING_TO_REPAIR = "nothing to repair: the program ran to its end"


def device(outcome: Outcome) -> str:
    """What the program ran on: "cpu", "cuda (NVIDIA H200)", "cpu (the program asks for cuda)"."""
    one = outcome.device
    more = neutral(one.name) or (f"the program asks for {one.asked_for}" if one.asked_for else "")
    return f"{one.kind} ({more})" if more else one.kind


def proof(outcome: Outcome) -> str:
    """On what the verdict rests: "proved on cpu for 12 optimizer steps under bubblewrap"."""
    steps = f" for {outcome.steps_proved} optimizer step{'s' * (outcome.steps_proved != 1)}"
    under = f" under {outcome.isolation}" if outcome.isolation not in ("", "none") else ", not isolated"
    return f"proved on {device(outcome)}{steps if outcome.steps_proved else ''}{under}"
