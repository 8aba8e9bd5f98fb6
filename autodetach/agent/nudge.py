"""Values changed a little on their way out of torch: who depends on them goes otherwise for it."""

import math

NUDGE = 2**-10
MOST_NUDGED = 4096
LEAVING = frozenset(["item", "tolist", "numpy", "__array__", "__float__"])


def nudged(value, size=NUDGE, at=0):
    """The same values, each off by a part ``size`` of them; no float, no change.

    Equal values are off alike, for a program may take them twice; others are not, so that no ratio hides it.
    """
    if isinstance(value, list):
        return [nudged(v, size, i) for i, v in enumerate(value)]
    if isinstance(value, float):
        return value + size * math.cos(phase(value) + 1.7 * at) * (abs(value) or 1.0)
    if getattr(getattr(value, "dtype", None), "kind", "") != "f":
        return value
    value = value.copy()
    flat = value.reshape(-1)  # a view: what was copied is contiguous
    scale = float((flat**2).mean()) ** 0.5 if flat.size else 0.0
    start = phase(float(flat.sum()))
    for i in range(min(flat.size, MOST_NUDGED)):
        flat[i] += size * math.cos(start + 1.7 * i) * (scale or 1.0)
    return value


def phase(value):
    return math.fmod(abs(value) * 997.0, math.tau) if math.isfinite(value) else 0.3
