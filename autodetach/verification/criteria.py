"""What a patch must pass: one function a criterion, each given recordings and returning Passed or Rejected."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from autodetach.diagnosis.recording import Backward, Number, Recording, Step
from autodetach.model import FailureKind, Passed, Rejected

Verdict = Passed | Rejected

RTOL = 2e-5
"""Sums of gradients may be added up in another order when a graph is cut elsewhere."""
ATOL = 1e-8
GRADIENT_RTOL = 1e-3
"""Of a gradient's norm, which sees what a small learning rate hides from the parameters."""
GRADIENT_FLOOR = 0.1
"""Of the largest gradient so far: a smaller one may be rounding alone, as a bias's is before a batch norm, and is
measured by that."""
UNMOVED = 1e-4
"""Of the largest gradient: what gets less than that may be left where it is by rounding (the bias of an attention's
keys)."""
MARGIN = 10
"""How much further than two runs of the program a right patch's run may be from the reference."""
AHEAD = 2
"""Steps whose spread counts for one before: by chance two runs may hardly differ in a single step."""
MOST_SPREAD = GRADIENT_RTOL / MARGIN
"""Beyond, the margin would swallow what tells a right patch from a wrong one."""


@dataclass(frozen=True)
class Spread:
    """How far two runs of the same program differ from each other, relatively: 0 where they are the same to the bit.

    ``relative``: at most, anywhere. ``values``: in the losses before the first update. ``training``: in parameters
    and gradients, after each step the most so far; empty where these are the same.
    """

    relative: float = 0.0
    values: float = 0.0
    training: tuple[float, ...] = ()

    def at(self, step: int) -> float:
        """What the margin adds to the tolerance of the training up to a step, which counts from 1."""
        return MARGIN * self.training[min(step + AHEAD, len(self.training)) - 1] if self.training else 0.0

    def rtol(self, step: int) -> float:
        return max(RTOL, self.at(step))

    @property
    def deterministic(self) -> bool:
        return self.relative == 0.0

    def decides(self, steps: int) -> bool:
        """Whether the training up to a step is known well enough to tell a right patch from a wrong one."""
        return self.at(steps) <= MARGIN * MOST_SPREAD


def close(a: Number | None, b: Number | None, rtol: float, atol: float = ATOL) -> bool:
    if isinstance(a, float | int) and isinstance(b, float | int):
        return abs(a - b) <= atol + rtol * max(abs(a), abs(b))
    return a == b


def difference(a: Number | None, b: Number | None, size: float = 0.0) -> float:
    """The difference of two numbers relative to them, or to ``size`` if that is larger; 1 where only one of them is a
    number."""
    if isinstance(a, float | int) and isinstance(b, float | int):
        size = max(abs(a), abs(b), size)
        return abs(a - b) / size if size > ATOL else 0.0
    return 0.0 if a == b else 1.0


def spread(first: Recording, second: Recording, upto: int) -> Spread:
    """The spread of two runs over what they have in common, at most the first ``upto`` steps."""
    values = [
        difference(a, b)
        for one, two in zip(_before(first, 0), _before(second, 0), strict=False)
        for a, b in zip(one.loss, two.loss, strict=False)
    ]
    later = [
        difference(a, b)
        for one, two in zip(_before(first, upto), _before(second, upto), strict=False)
        for a, b in zip(one.loss, two.loss, strict=False)
    ]
    training = list(itertools.accumulate(_apart(first, second, upto), max))
    worst = max([*values, *later, *training[-1:]], default=0.0)
    return Spread(worst, max(values, default=0.0), tuple(training) if any(training) else ())


def _apart(first: Recording, second: Recording, upto: int) -> list[float]:
    """For each step, or each backward where the program updates by hand, how far apart two runs are."""
    if not first.steps:
        pairs = list(zip(_passes(first), _passes(second), strict=False))[:upto]
        return [_apart_by_hand(a, b, first, second) for a, b in pairs]
    found, so_far = [], 0.0
    for s, t in zip(first.steps[:upto], second.steps[:upto], strict=False):
        if s.optimizer != t.optimizer or _fed_at(s) != _fed_at(t):
            found.append(1.0)
            continue
        if not (s.params and t.params):
            found.append(0.0)  # not every run measures every step
            continue
        so_far = max(so_far, largest(s.grads))
        differences = [difference(g, h, GRADIENT_FLOOR * so_far) for g, h in zip(s.grads, t.grads, strict=True)]
        for p, q in zip(s.params, t.params, strict=False):
            differences += [difference(p[0], q[0]), difference(p[1], q[1], _number(p[0]))]
        found.append(max(differences, default=0.0))
    return found


def _apart_by_hand(a: Backward, b: Backward, first: Recording, second: Recording) -> float:
    rows = [sorted(_numbers(x, trained_leaves(r))) for x, r in ((a, first), (b, second))]
    if len(rows[0]) != len(rows[1]):
        return 1.0
    apart = [0.0]
    for p, q in zip(*rows, strict=True):
        apart += [difference(p[0], q[0]), difference(p[1], q[1], p[0]), difference(p[2], q[2])]
    return max(apart)


def _number(value: Number | None) -> float:
    return abs(value) if isinstance(value, float | int) else 0.0


def largest(gradients: Iterable[Number | None]) -> float:
    """The largest norm of a gradient; 0 where there is none."""
    return max(map(_number, gradients), default=0.0)


def _fed_at(step: Step) -> list[bool]:
    return [norm is not None for norm in step.grads]


def _passes(recording: Recording) -> list[Backward]:
    return [b for b in recording.backwards if b.call == "backward"]


def _before(recording: Recording, steps: int) -> list[Backward]:
    return [b for b in recording.backwards if b.steps <= steps]


def runs(
    patched: Recording, broken: Recording, progress: int, to_its_end: bool = False, must_end: bool = False
) -> Verdict:
    """The failing backward passes and goes on passing for ``progress`` steps; or to the program's own end, if that
    comes first and ``to_its_end`` allows it. ``must_end``: and the program then comes to its end."""
    name = "runs"
    failure = patched.failure
    if failure is not None:
        same = broken.failure is not None and failure.kind == broken.failure.kind
        where = f" at {failure.chain[0].span.place}" if failure.chain else ""
        again = "the same error comes back" if same else f"another error comes: {failure.kind}"
        return Rejected(name, f"{again}{where}, at step {failure.steps + 1}")
    if patched.how == "error":
        last = patched.traceback.strip().splitlines()[-1:] or ["it failed"]
        return Rejected(name, f"the patched program fails: {last[0][:160]}")
    if patched.how == "":
        death = patched.death or "did not come to the end of its trial in time"
        return Rejected(name, f"the patched program {death}")
    if patched.progress < progress and not (patched.how == "exit" and to_its_end):
        return Rejected(name, f"it ends after {patched.progress} steps, the reference made {progress}")
    if must_end and patched.how != "exit":
        return Rejected(name, f"it does not end after {progress} steps, as the reference does")
    return Passed(name, f"{patched.progress} steps{', to its end' * must_end}")


def same_values(patched: Recording, broken: Recording, allowed: Spread) -> Verdict:
    """Cutting a graph changes no forward value: up to the first update the losses are the broken program's."""
    name = "same values"
    known = [b for b in broken.backwards if b.steps == 0]
    found = [b for b in patched.backwards if b.steps == 0]
    rtol = MARGIN * allowed.values
    failure = broken.failure
    if failure is not None and failure.kind is FailureKind.NO_GRAD_FN and len(known) == failure.backwards < len(found):
        for was, value in zip(broken.failure_values, found[len(known)].loss, strict=False):
            if not close(was, value, max(RTOL, rtol)):
                return Rejected(name, f"the loss that had no graph is {value}, not {was}")
    for before, after in zip(known, found, strict=False):
        other = _other_loss(after, before, rtol)
        if other is not None:
            return other
    return Passed(name)


def other_value(got: Backward, broken: Recording, allowed: Spread) -> Rejected | None:
    """What ``same_values`` says of one of the backwards before the first update, if that decides it."""
    before = [b for b in broken.backwards if b.steps == 0]
    was = before[got.n - 1] if 0 < got.n <= len(before) else None
    return _other_loss(got, was, MARGIN * allowed.values) if was is not None else None


def _other_loss(got: Backward, was: Backward, rtol: float) -> Rejected | None:
    if len(was.loss) != len(got.loss) or all(close(a, b, rtol, 0.0) for a, b in zip(was.loss, got.loss, strict=True)):
        return None
    return Rejected("same values", f"backward {was.n} starts from the loss {got.loss[0]}, not {was.loss[0]}")


def same_training(patched: Recording, reference: Recording, allowed: Spread) -> Verdict:
    """Equal to the reference trajectory from the first step on."""
    name = "same training"
    if not reference.steps:
        return _same_training_by_hand(patched, reference, allowed)
    if len(patched.steps) < len(reference.steps):
        return Rejected(name, f"{len(patched.steps)} optimizer steps, the reference makes {len(reference.steps)}")
    so_far = 0.0
    for want, got in zip(reference.steps, patched.steps, strict=False):
        so_far = max(so_far, largest(want.grads))
        other = apart(want, got, allowed, so_far)
        if other is not None:
            return other
    measured, steps = sum(bool(step.params) for step in reference.steps), len(reference.steps)
    if measured < steps:
        return Passed(name, f"{measured} of {steps} steps compared, all from the failure on, and equal")
    return Passed(name, f"{steps} steps equal")


def apart(want: Step, got: Step, allowed: Spread, so_far: float) -> Rejected | None:
    """What ``same_training`` says of one step, if that decides it; ``so_far``: the largest gradient of the reference
    up to there."""
    name = "same training"
    if want.optimizer != got.optimizer or len(want.params) != len(got.params):
        return Rejected(name, f"at step {want.n} another optimizer steps")
    if _fed_at(want) != _fed_at(got):
        count = sum(a != b for a, b in zip(_fed_at(got), _fed_at(want), strict=False))
        return Rejected(name, f"at step {want.n} {count} parameters are fed otherwise than in the reference")
    if not _same_parameters(want, got, allowed):
        return Rejected(name, f"from step {want.n} on the parameters differ from the reference")
    rtol, floor = GRADIENT_RTOL + allowed.at(want.n), GRADIENT_FLOOR * so_far
    if any(difference(g, h, floor) > rtol for g, h in zip(want.grads, got.grads, strict=True)):
        return Rejected(name, f"from step {want.n} on the gradients differ from the reference")
    return None


def _same_parameters(want: Step, got: Step, allowed: Spread) -> bool:
    rtol, more = allowed.rtol(want.n), allowed.at(want.n)
    return all(
        close(p[0], q[0], rtol) and close(p[1], q[1], rtol, 1e-7 + more * _number(p[0]))
        for p, q in zip(want.params, got.params, strict=True)
    )


def trained_leaves(recording: Recording) -> frozenset[str]:
    """Without an optimizer: the leaves whose values change from backward to backward."""
    first: dict[str, object] = {}
    changed = set()
    for backward in recording.backwards:
        for name, _, print_ in backward.leaves:
            if first.setdefault(name, print_) != print_:
                changed.add(name)
    return frozenset(changed)


def _same_training_by_hand(patched: Recording, reference: Recording, allowed: Spread) -> Verdict:
    name = "same training"
    want_names, got_names = trained_leaves(reference), trained_leaves(patched)
    wants, gots = _passes(reference), _passes(patched)
    if len(gots) < len(wants):
        return Rejected(name, f"{len(gots)} backward passes, the reference makes {len(wants)}")
    for n, (want, got) in enumerate(zip(wants, gots, strict=False), 1):
        rows = [sorted(_numbers(b, names)) for b, names in ((want, want_names), (got, got_names))]
        if not _same_rows(rows[0], rows[1], allowed, n):
            return Rejected(name, f"from backward {want.n} on the parameters differ from the reference")
    return Passed(name, f"{len(wants)} backward passes equal")


def _same_rows(want: list[tuple[float, ...]], got: list[tuple[float, ...]], allowed: Spread, n: int) -> bool:
    rtol, more = allowed.rtol(n), allowed.at(n)
    return len(want) == len(got) and all(
        close(a, b, rtol, 1e-7 + more * x[0]) for x, y in zip(want, got, strict=True) for a, b in zip(x, y, strict=True)
    )


def _numbers(backward: Backward, names: frozenset[str]) -> list[tuple[float, ...]]:
    rows = []
    for name, gradient, (norm, projection) in backward.leaves:
        if name in names:
            values = (norm, projection, gradient if gradient is not None else 0.0)
            rows.append(tuple(v if isinstance(v, float | int) else 0.0 for v in values))
    return rows


def nobody_starves(patched: Recording, broken: Recording, reference: Recording | None) -> Verdict:
    """Every parameter that an optimizer fed goes on being fed, unless the reference says otherwise."""
    name = "nobody starves"
    fed_in_reference = _fed(reference) if reference is not None else None
    fed = _fed(patched)
    for parameter in _fed(broken):
        if parameter not in fed and (fed_in_reference is None or parameter in fed_in_reference):
            return Rejected(name, f"parameter {parameter[1]} of optimizer {parameter[0]} gets no gradient any more")
    return Passed(name)


def _fed(recording: Recording) -> frozenset[tuple[int, int]]:
    return frozenset(
        (step.optimizer, place)
        for step in recording.steps
        if step.params  # else nothing tells a gradient of zeros from others
        for place, norm in enumerate(step.grads)
        if norm not in (None, 0.0)
    )


def grows(live: tuple[tuple[int, int], ...]) -> bool:
    """Whether the live graph rises at most samples of the later half and never falls."""
    counts = [nodes for _, nodes in live]
    half = counts[len(counts) // 2 :]
    rises = sum(a < b for a, b in itertools.pairwise(half))
    falls = any(a > b for a, b in itertools.pairwise(half))
    return len(half) >= 3 and not falls and rises >= 0.6 * (len(half) - 1)


def no_growth(patched: Recording, reference: Recording | None, trajectory: Recording | None = None) -> Verdict:
    """Live autograd nodes do not grow from step to step, and no more old ones stay alive than in ``trajectory``.

    ``reference`` excuses growth, ``trajectory`` does not.
    """
    name = "no growth"
    kept = dict(trajectory.old) if trajectory is not None else {}
    for step, old in patched.old[-1:]:
        if step in kept and old > kept[step]:
            return Rejected(name, f"after step {step} still {old - kept[step]} nodes from before the failure are held")
    if grows(patched.live) and not (reference is not None and grows(reference.live)):
        first, last = patched.live[0], patched.live[-1]
        return Rejected(
            name,
            f"the graph grows for ever: {first[1]} live nodes after step {first[0]}, {last[1]} after step {last[0]}",
        )
    return Passed(name)


def same_first_step(patched: Recording, broken: Recording, allowed: Spread) -> Verdict:
    """Where no reference trajectory exists: the first step must be the broken program's."""
    name = "same first step"
    if not broken.steps:
        return _same_first_gradients(patched, broken, allowed)
    want = broken.steps[0]
    got = patched.steps[0] if patched.steps else None
    if got is None or len(got.params) != len(want.params):
        return Rejected(name, "the first optimizer step is another one")
    if not _same_parameters(want, got, allowed):
        return Rejected(name, "already the first step leads to other parameters")
    return Passed(name)


def _same_first_gradients(patched: Recording, broken: Recording, allowed: Spread) -> Verdict:
    """Without an optimizer: the leaves and gradients of the first backward."""
    name = "same first step"
    if not broken.backwards:
        return Passed(name, "the broken program made no step")
    if not patched.backwards:
        return Rejected(name, "there is no backward pass")
    want, got = (
        sorted(_numbers(r.backwards[0], frozenset(n for n, _, _ in r.backwards[0].leaves))) for r in (broken, patched)
    )
    if not _same_rows(want, got, allowed, 1):
        return Rejected(name, "already the first backward gives other gradients")
    return Passed(name)


def fresh_weights(patched: Recording) -> Verdict:
    """No gradient is taken at weights that an update has replaced since: what was kept from before has old values."""
    name = "no outdated weights"
    for backward in patched.backwards:
        if backward.outdated is not None:
            where = patched.chain(backward.outdated)
            at = f" (computed in {where[0].span.place})" if where else ""
            return Rejected(name, f"backward {backward.n} differentiates through weights updated since{at}")
    return Passed(name)


def all_fed_by_hand(patched: Recording, broken: Recording) -> Verdict:
    """Without an optimizer: every leaf that the broken program's first backward taught gets a gradient at every
    backward, and is updated in between."""
    name = "everybody learns"
    taught = sum(gradient is not None for _, gradient, _ in broken.backwards[0].leaves) if broken.backwards else 0
    passes = [b for b in patched.backwards if b.call == "backward"]
    for backward in passes:
        if sum(gradient is not None for _, gradient, _ in backward.leaves) < taught:
            return Rejected(name, f"at backward {backward.n} some parameters get no gradient")
    moved = trained_leaves(patched)
    most = max((largest(gradient for _, gradient, _ in b.leaves) for b in passes), default=0.0)
    still = {
        name
        for backward in passes
        for name, gradient, _ in backward.leaves
        if name not in moved and _number(gradient) > UNMOVED * most
    }
    if still:
        return Rejected(name, f"{len(still)} leaves get gradients and are never updated")
    return Passed(name, f"{taught} parameters")


def all_fed(patched: Recording, broken: Recording, parameters: frozenset[tuple[int, int]]) -> Verdict:
    """Every one of these parameters gets a gradient at every step of its optimizer, but where the broken program, too,
    had none for it yet (a warm-up).

    One that is exactly zero may be so by the numbers (a dead unit, signs that cancel), but not most of the time.
    """
    name = "everybody learns"
    norms: dict[tuple[int, int], list[Number | None]] = defaultdict(list)
    idle = {
        (step.n, step.optimizer, place)
        for step in broken.steps
        for place, norm in enumerate(step.grads)
        if norm is None
    }
    for step in patched.steps:
        for place, norm in enumerate(step.grads):
            if (step.optimizer, place) not in parameters or (step.n, step.optimizer, place) in idle:
                continue
            norms[step.optimizer, place].append(norm)
            if norm is None:
                return _unfed(step.optimizer, place, f"at step {step.n}")
    for (optimizer, place), some in norms.items():
        zeros = sum(norm == 0.0 for norm in some)
        if 2 * zeros > len(some):
            return _unfed(optimizer, place, f"in {zeros} of {len(some)} steps")
    return Passed(name, f"{len(parameters)} parameters")


def _unfed(optimizer: int, place: int, when: str) -> Rejected:
    return Rejected("everybody learns", f"parameter {place} of optimizer {optimizer} gets no gradient {when}")
