"""Values changed a little on their way out of torch: who depends on them goes otherwise for it."""

import math

NUDGE = 2**-10
MOST_NUDGED = 4096
LEAVING = frozenset(["item", "tolist", "numpy", "__array__", "__float__"])


def nudged(value, times):
    """The same values, each off by another thousandth, so that no sum, scale or order hides it; no float, no change."""
    if isinstance(value, list):
        return [nudged(v, times + i) for i, v in enumerate(value)]
    if isinstance(value, float):
        return value + NUDGE * math.cos(1.7 * times + 0.3) * (abs(value) or 1.0)
    if getattr(getattr(value, "dtype", None), "kind", "") != "f":
        return value
    value = value.copy()
    flat = value.reshape(-1)  # a view: what was copied is contiguous
    size = float((flat**2).mean()) ** 0.5 if flat.size else 0.0
    for i in range(min(flat.size, MOST_NUDGED)):
        flat[i] += NUDGE * math.cos(1.7 * (times + i) + 0.3) * (size or 1.0)
    return value
