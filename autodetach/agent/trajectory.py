"""How a program trains, in numbers: per optimizer step the parameters and gradients, per backward the loss.

A step is measured after every step of the program, so it must cost little: small tensors are measured together, in a
handful of operations for all of them, large ones in pieces that stay in the processor's cache.
"""

import math

import torch

from .wire import number

_SAMPLE = 1 << 18
"""Of a larger tensor every n-th element is taken, so many at most: some of every row that an update could touch."""
_PIECE = 1 << 16
_SMALL = 1 << 12
_weights = {}
_plans = {}


def fingerprint(tensor):
    """[norm, projection] of a tensor in double precision; two tensors of equal bits have equal fingerprints."""
    return fingerprints([tensor])[0]


def fingerprints(tensors):
    """The fingerprint of each tensor."""
    found = [None] * len(tensors)
    for plan in _plans_of(tensors):
        flat = plan.together(tensors)
        norms, projections = plan.sums(flat * flat).sqrt_().tolist(), plan.sums(flat * plan.weights).tolist()
        for i, norm, projection in zip(plan.places, norms, projections, strict=True):
            found[i] = [number(norm), number(projection)]
    for i, tensor in enumerate(tensors):
        if found[i] is None:
            found[i] = _alone(tensor)
    return found


def gradient_norms(parameters):
    """The norm of each parameter's gradient; None where there is none."""
    gradients = [p.grad for p in parameters]
    found = [None] * len(gradients)
    for plan in _plans_of(gradients):
        for i, norm in zip(plan.places, plan.sums(plan.together(gradients).square_()).sqrt_().tolist(), strict=True):
            found[i] = norm if norm < math.inf else number(norm)
    for i, gradient in enumerate(gradients):
        if gradient is not None and found[i] is None:
            found[i] = _alone(gradient, projected=False)[0]
    return found


def gradient_norm(parameter):
    return gradient_norms([parameter])[0]


def marks(parameters):
    """Of each parameter one character: ``+`` it has a gradient, ``-`` it has none."""
    return "".join(["-" if p.grad is None else "+" for p in parameters])


def loss_values(roots):
    return [_value(r) for r in roots]


def _value(root):
    if root.is_complex():
        return 0.0
    return number(root.item() if root.numel() == 1 else root.detach().to(torch.float64).sum())


class _Plan:
    """How small tensors of these kinds are measured together; made once, used after every step."""

    def __init__(self, places, sizes):
        self.places = places
        self.lengths = torch.tensor(sizes, device="cpu")
        self.weights = torch.cat([_weights_for(size) for size in sizes])

    def together(self, tensors):
        """Their elements end to end, in double precision: a copy. Always summed in the same way, on the CPU."""
        flat = torch._C._nn.flatten_dense_tensors([tensors[i] for i in self.places])
        return flat.to("cpu", torch.float64, copy=True)

    def sums(self, values):
        return torch.segment_reduce(values, "sum", lengths=self.lengths, unsafe=True)


def _plans_of(tensors):
    """A plan for the small ones of each kind and device."""
    kinds = tuple([_kind(t) for t in tensors])
    known = _plans.get(kinds)
    if known is None:
        groups = {}
        for i, kind in enumerate(kinds):
            if kind is not None:
                groups.setdefault(kind[1:], []).append(i)
        if len(_plans) > 64:
            _plans.clear()
        known = _plans[kinds] = [
            _Plan(places, [kinds[i][0] for i in places]) for places in groups.values() if len(places) > 1
        ]
    return known


def _kind(tensor):
    """(elements, type, device) of a small tensor; None for all that is measured alone: what is large, sparse, complex,
    empty, or of a subclass, which may be anything."""
    if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter:
        return None
    size = tensor.numel()
    if not 0 < size <= _SMALL or tensor.layout is not torch.strided or not tensor.is_floating_point():
        return None
    return None if tensor.is_meta else (size, tensor.dtype, tensor.device)


def _alone(tensor, projected=True):
    flat = tensor.detach()
    if flat.is_sparse:
        flat = flat.coalesce().values() if not projected else flat.to_dense()
    if flat.is_complex():
        flat = torch.view_as_real(flat)
    if flat.numel() == 0 or flat.is_meta:
        return [0.0, 0.0]
    flat = flat.reshape(-1)
    if flat.numel() > _SAMPLE:
        flat = flat[:: flat.numel() // _SAMPLE + 1]
    flat = flat.to("cpu")  # always the same sum, also where a device's is not
    if not projected and flat.dtype in (torch.float32, torch.float64):
        norm = float(torch.linalg.vector_norm(flat))
        if 1e-12 < norm < 1e12:  # squares neither vanish nor overflow: single precision will do
            return [norm, 0.0]
    squares, projection = [], []
    size = min(flat.numel(), _PIECE)
    weights, buffer = _weights_for(size), torch.empty(size, dtype=torch.float64, device="cpu")
    for k, piece in enumerate(flat.split(_PIECE)):
        piece = buffer[: piece.numel()].copy_(piece)
        squares.append(piece @ piece)
        if projected:
            # each piece weighs differently: two that change places are told apart
            projection.append((piece @ weights[: piece.numel()]) * math.cos(0.7 * k))
    return [number(torch.stack(squares).sum().sqrt()), number(torch.stack(projection).sum()) if projected else 0.0]


def _weights_for(length):
    if length not in _weights:
        if len(_weights) > 64:
            _weights.clear()
        _weights[length] = torch.cos(torch.arange(length, dtype=torch.float64, device="cpu") * 1.7 + 0.3)
    return _weights[length]
