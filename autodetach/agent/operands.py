"""The tensors among a call's arguments, each with its path, and calls that read or write them specially."""

import torch

# Readers through which no gradient would ever flow: reading a stale tensor this way is no use of its graph.
READERS = frozenset(
    """backward detach detach_ item numpy tolist requires_grad_ retain_grad register_hook size dim ndimension numel
    nelement stride data_ptr element_size storage untyped_storage is_contiguous is_floating_point is_complex
    is_same_size __len__ __bool__ __float__ __int__ __index__ __repr__ __format__ __array__ __contains__ __hash__
    __reduce_ex__ __deepcopy__ argmax argmin argsort zeros_like ones_like rand_like randn_like randint_like empty_like
    full_like new_zeros new_ones new_empty new_full new_tensor eq ne lt gt le ge __eq__ __ne__ __lt__ __gt__ __le__
    __ge__ isnan isinf isfinite isclose allclose equal is_nonzero sign signbit get_device is_shared share_memory_
    __dlpack__ __dlpack_device__ __cuda_array_interface__ bernoulli multinomial _is_view has_names
    """.split()  # noqa: SIM905
)

# Draws of random numbers: where one stands, doing it again gives another value. (Dropout is meant to.)
RANDOM = frozenset(
    """rand randn randint randperm normal bernoulli multinomial poisson rand_like randn_like randint_like normal_
    uniform_ random_ bernoulli_ exponential_ log_normal_ cauchy_ geometric_""".split()  # noqa: SIM905
)

IN_PLACE_OPERATORS = frozenset(
    "__setitem__ __iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __iand__ __ior__ __ixor__".split()  # noqa: SIM905,E501
)


DROPPED = object()
"""What ``replace``'s function returns for a tensor that is left out of its list."""


FIXED, ANY = 3, -1


def writes_in_place(name):
    return name in IN_PLACE_OPERATORS or (name.endswith("_") and not name.endswith("__"))


def replace(value, path, function):
    """``value`` with each tensor replaced by ``function(tensor, path)``; lists and tuples are rebuilt if needed."""
    if isinstance(value, torch.Tensor):
        return function(value, path)
    if type(value) in (list, tuple) and value:
        # a short list is a fixed set of operands; where a tensor stands in a long one changes from step to step
        fixed = len(value) <= FIXED
        changed = [replace(v, (*path, i if fixed else ANY), function) for i, v in enumerate(value)]
        if any(v is DROPPED for v in changed):
            return type(value)(v for v in changed if v is not DROPPED) or value
        if any(a is not b for a, b in zip(changed, value, strict=True)):
            return type(value)(changed)
    return value


def tensors(value, limit=3):
    """The tensors of a call's arguments or result, nested containers included."""
    if isinstance(value, torch.Tensor):
        yield value
    elif limit and isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item, limit - 1)
    elif limit and isinstance(value, dict):
        for item in value.values():
            yield from tensors(item, limit - 1)


def has_float(result):
    return any(t.is_floating_point() or t.is_complex() for t in tensors(result))
