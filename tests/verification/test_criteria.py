"""Each criterion on recordings made by hand: what passes, what is rejected, and for which reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autodetach.diagnosis.recording import Backward, Recording, Step
from autodetach.model import Failure, FailureKind, Frame, Passed, Rejected, Span
from autodetach.verification import criteria
from autodetach.verification.criteria import Spread

CHAIN = (Frame(Span("train.py", 7, 4, 7, 19), "train", True),)
SAME = Spread()


def training(*params, grads=None, losses=None, optimizers=None, **more):
    """One optimizer step for each tuple of parameters; each step has a backward of its own."""
    grads = grads or [[1.0] * len(p) for p in params]
    losses = losses or [float(n) for n in range(len(params))]
    optimizers = optimizers or [0] * len(params)
    steps = tuple(
        Step(n=n, optimizer=o, params=tuple((v, -v) for v in p), grads=tuple(g), backwards=n)
        for n, (p, g, o) in enumerate(zip(params, grads, optimizers, strict=True), 1)
    )
    backwards = tuple(
        Backward(n=n, call="backward", site="s", steps=n - 1, loss=(loss,), retain=False, create=False)
        for n, loss in enumerate(losses, 1)
    )
    values = {"how": "exit", "progress": len(steps), "has_optimizer": bool(steps)} | more
    return Recording(sites={}, steps=steps, backwards=backwards, **values)


def failing(recording, kind=FailureKind.SECOND_BACKWARD, steps=1):
    return replace(recording, failure=Failure(kind, "message", CHAIN, steps, steps), how="error")


GOOD = training((1.0, 2.0), (1.1, 2.1), (1.2, 2.2))
BROKEN = failing(training((1.0, 2.0)))


def said(verdict):
    assert isinstance(verdict, Rejected)
    return verdict.reason


# -- runs ---------------------------------------------------------------------------------------------------------


def test_runs():
    assert criteria.runs(GOOD, BROKEN, 3) == Passed("runs", "3 steps")
    assert criteria.runs(replace(GOOD, how="stopped"), BROKEN, 3) == Passed("runs", "3 steps")


def test_the_same_error_and_another_one():
    assert (
        said(criteria.runs(failing(GOOD, steps=4), BROKEN, 3)) == "the same error comes back at train.py:7, at step 5"
    )
    other = criteria.runs(failing(GOOD, FailureKind.IN_PLACE), BROKEN, 3)
    assert said(other) == "another error comes: in-place at train.py:7, at step 2"


def test_a_patch_whose_program_fails_in_its_own_way():
    trace = (
        "Traceback (most recent call last):\n  File ...\nAttributeError: 'NoneType' object has no attribute 'detach'\n"
    )
    verdict = criteria.runs(replace(GOOD, how="error", traceback=trace), BROKEN, 3)
    assert said(verdict) == "the patched program fails: AttributeError: 'NoneType' object has no attribute 'detach'"
    assert "fails" in said(criteria.runs(replace(GOOD, how="error"), BROKEN, 3))


def test_a_patch_whose_program_does_not_come_far_enough():
    assert said(criteria.runs(GOOD, BROKEN, 4)) == "it ends after 3 steps, the reference made 4"
    assert "in time" in said(criteria.runs(replace(GOOD, how=""), BROKEN, 3))


# -- same values ---------------------------------------------------------------------------------------------------


def test_losses_before_the_first_update_are_the_same_to_the_bit():
    patched = training((1.0,), (1.0,), losses=[0.5, 9.0])
    assert isinstance(criteria.same_values(patched, failing(training((1.0,), losses=[0.5])), SAME), Passed)
    shifted = criteria.same_values(patched, failing(training((1.0,), losses=[0.5000001])), SAME)
    assert said(shifted) == "backward 1 starts from the loss 0.5, not 0.5000001"


def test_what_comes_after_the_first_update_is_not_compared():
    later = failing(training((1.0,), (1.0,), losses=[0.5, 1.0], progress=2))
    assert isinstance(criteria.same_values(training((1.0,), (1.0,), losses=[0.5, 2.0]), later, SAME), Passed)


def test_two_runs_that_differ_allow_a_patch_to_differ():
    first, second = training((1.0,), losses=[1.0]), training((1.0,), losses=[1.001])
    measured = criteria.spread(first, second, 1)
    assert not measured.deterministic and measured.relative == pytest.approx(0.001, rel=0.01)
    assert isinstance(criteria.same_values(training((1.0,), losses=[1.004]), failing(first), measured), Passed)
    assert isinstance(criteria.same_values(training((1.0,), losses=[1.1]), failing(first), measured), Rejected)


def test_losses_that_are_no_numbers():
    nan = training((1.0,), losses=["nan"])
    assert isinstance(criteria.same_values(nan, failing(nan), SAME), Passed)
    assert isinstance(criteria.same_values(training((1.0,), losses=[1.0]), failing(nan), SAME), Rejected)


def test_spread_of_equal_runs_is_none():
    assert criteria.spread(GOOD, GOOD, 3) == Spread(0.0)
    assert criteria.spread(GOOD, training((1.0, 2.0), (1.1, 2.1), (1.2, 2.3)), 2) == Spread(0.0)  # beyond its steps
    assert criteria.spread(GOOD, training((1.0, 3.0), (1.1, 2.1), (1.2, 2.2)), 2).relative == pytest.approx(1 / 3)


# -- same training -------------------------------------------------------------------------------------------------


def test_equal_training():
    assert criteria.same_training(GOOD, GOOD, SAME) == Passed("same training", "3 steps equal")
    close = training((1.0, 2.0), (1.1, 2.1), (1.2 * (1 + 5e-6), 2.2))
    assert isinstance(criteria.same_training(close, GOOD, SAME), Passed)  # sums in another order
    longer = training((1.0, 2.0), (1.1, 2.1), (1.2, 2.2), (9.0, 9.0))
    assert isinstance(criteria.same_training(longer, GOOD, SAME), Passed)


def test_training_that_differs_from_some_step_on():
    later = training((1.0, 2.0), (1.1, 2.1), (1.2, 2.3))
    assert said(criteria.same_training(later, GOOD, SAME)) == "from step 3 on the parameters differ from the reference"
    assert "from step 1" in said(criteria.same_training(training((0.0, 0.0), (0.0, 0.0), (0.0, 0.0)), GOOD, SAME))


def test_a_projection_tells_what_a_norm_does_not():
    turned = replace(GOOD, steps=tuple(replace(s, params=tuple((n, -p) for n, p in s.params)) for s in GOOD.steps))
    assert "from step 1" in said(criteria.same_training(turned, GOOD, SAME))


def test_parameters_that_are_fed_otherwise():
    starved = training((1.0, 2.0), (1.1, 2.1), (1.2, 2.2), grads=[[1.0, 1.0], [1.0, None], [1.0, 1.0]])
    assert said(criteria.same_training(starved, GOOD, SAME)) == (
        "at step 2 1 parameters are fed otherwise than in the reference"
    )
    assert isinstance(criteria.same_training(GOOD, starved, SAME), Rejected)  # nor may more be fed


def test_another_optimizer_or_too_few_steps():
    other = training((1.0, 2.0), (1.1, 2.1), (1.2, 2.2), optimizers=[0, 1, 0])
    assert said(criteria.same_training(other, GOOD, SAME)) == "at step 2 another optimizer steps"
    assert said(criteria.same_training(training((1.0, 2.0)), GOOD, SAME)) == "1 optimizer steps, the reference makes 3"


def by_hand(*rows):
    """Training without an optimizer: for each backward its leaves as {name: (value, gradient)}."""
    return Recording(
        sites={},
        how="exit",
        progress=len(rows),
        backwards=tuple(
            Backward(
                n=n,
                call="backward",
                site="s",
                steps=0,
                loss=(1.0,),
                retain=False,
                create=False,
                leaves=tuple((name, g, (v, v)) for name, (v, g) in row.items()),
            )
            for n, row in enumerate(rows, 1)
        ),
    )


def test_training_by_hand_is_compared_by_the_leaves_that_change():
    want = by_hand({"w": (1.0, 0.5), "x": (7.0, 0.1)}, {"w": (0.5, 0.5), "x": (7.0, 0.1)})
    without = by_hand({"w": (1.0, 0.5)}, {"w": (0.5, 0.5)})  # the data no longer requires gradients
    assert criteria.trained_leaves(want) == {"w"}
    assert criteria.same_training(without, want, SAME) == Passed("same training", "2 backward passes equal")
    frozen = by_hand({"w": (1.0, 0.5)}, {"w": (0.6, 0.5)})
    assert said(criteria.same_training(frozen, want, SAME)) == (
        "from backward 2 on the parameters differ from the reference"
    )
    assert "1 backward passes" in said(criteria.same_training(by_hand({"w": (1.0, 0.5)}), want, SAME))


# -- nobody starves, everybody learns, first step ------------------------------------------------------------------


def test_who_was_fed_is_fed():
    starving = training((1.0, 2.0), (1.1, 2.0), grads=[[1.0, 0.0], [1.0, None]])
    fed = training((1.0, 2.0), (1.1, 2.1))
    verdict = criteria.nobody_starves(starving, BROKEN, fed)
    assert said(verdict) == "parameter 1 of optimizer 0 gets no gradient any more"
    assert isinstance(criteria.nobody_starves(fed, BROKEN, fed), Passed)
    assert isinstance(criteria.nobody_starves(starving, BROKEN, starving), Passed)  # the reference says otherwise
    assert isinstance(criteria.nobody_starves(starving, BROKEN, None), Rejected)


def test_once_fed_is_fed_enough():
    """A parameter may be idle in some steps: two optimizers, a warm-up."""
    late = training((1.0, 2.0), (1.1, 2.1), grads=[[1.0, None], [1.0, 1.0]])
    assert isinstance(criteria.nobody_starves(late, BROKEN, None), Passed)


def test_everybody_learns():
    parameters = frozenset({(0, 0), (0, 1)})
    assert isinstance(criteria.all_fed(GOOD, BROKEN, parameters), Passed)
    starving = training((1.0, 2.0), (1.1, 2.1), grads=[[1.0, 1.0], [1.0, None]])
    assert (
        said(criteria.all_fed(starving, BROKEN, parameters)) == "parameter 1 of optimizer 0 gets no gradient at step 2"
    )
    zero = training((1.0, 2.0), (1.1, 2.1), (1.2, 2.2), grads=[[1.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    said_of_zero = said(criteria.all_fed(zero, BROKEN, parameters))
    assert said_of_zero == "parameter 1 of optimizer 0 gets no gradient in 2 of 3 steps"
    cancelled = training((1.0, 2.0), (1.1, 2.1), (1.2, 2.2), grads=[[1.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert isinstance(criteria.all_fed(cancelled, BROKEN, parameters), Passed)
    assert isinstance(criteria.all_fed(starving, BROKEN, frozenset({(0, 0)})), Passed)


def test_who_starts_to_learn_later_need_not_learn_from_the_first_step_on():
    parameters = frozenset({(0, 1)})
    warm_up = training((1.0, 2.0), grads=[[1.0, None]])
    late = training((1.0, 2.0), (1.1, 2.1), grads=[[1.0, None], [1.0, 1.0]])
    never = training((1.0, 2.0), (1.1, 2.1), grads=[[1.0, None], [1.0, None]])
    assert isinstance(criteria.all_fed(late, warm_up, parameters), Passed)
    assert said(criteria.all_fed(never, warm_up, parameters)) == "parameter 1 of optimizer 0 gets no gradient at step 2"


def test_the_first_step():
    assert isinstance(criteria.same_first_step(GOOD, BROKEN, SAME), Passed)
    other = training((1.0, 2.5), (1.1, 2.1))
    assert said(criteria.same_first_step(other, BROKEN, SAME)) == "already the first step leads to other parameters"
    fewer = training((1.0,), (1.1,))
    assert isinstance(criteria.same_first_step(fewer, BROKEN, SAME), Rejected)
    assert isinstance(criteria.same_first_step(Recording(sites={}), BROKEN, SAME), Rejected)
    assert isinstance(criteria.same_first_step(GOOD, failing(Recording(sites={})), SAME), Passed)


# -- growth --------------------------------------------------------------------------------------------------------

GROWING = {
    "by the same each step": [10, 20, 30, 40, 50, 60, 70, 80],
    "late": [10, 10, 10, 10, 12, 14, 16, 18],
    "with pauses": [5, 6, 6, 7, 8, 8, 9, 10, 10, 11, 12],
    "faster and faster": [1, 2, 4, 8, 16, 32],
}
STEADY = {
    "constant": [10] * 8,
    "a warm-up": [10, 20, 30, 40, 40, 40, 40, 40],
    "up and down": [10, 20, 10, 20, 10, 20, 10, 20],
    "falling": [80, 70, 60, 50, 40, 30],
    "a window that is emptied": [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4],
    "too few to tell": [1, 2],
    "nothing": [],
}


def counted(counts):
    return replace(GOOD, live=tuple(enumerate(counts, 1)))


@pytest.mark.parametrize("name", GROWING)
def test_a_graph_that_grows_is_a_leak(name):
    reason = said(criteria.no_growth(counted(GROWING[name]), None))
    assert f"{GROWING[name][0]} live nodes after step 1" in reason
    assert f"{GROWING[name][-1]} after step {len(GROWING[name])}" in reason
    assert isinstance(criteria.no_growth(counted(GROWING[name]), counted([10] * 8)), Rejected)


@pytest.mark.parametrize("name", STEADY)
def test_one_that_does_not_is_none(name):
    assert isinstance(criteria.no_growth(counted(STEADY[name]), None), Passed)


def test_a_leak_that_the_reference_has_too_is_not_the_patchs():
    assert isinstance(criteria.no_growth(counted(GROWING["late"]), counted(GROWING["by the same each step"])), Passed)
