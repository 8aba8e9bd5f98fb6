"""How a program trains, in numbers: per optimizer step the parameters and gradients, per backward the loss."""

import torch

from .wire import number

_WEIGHTS = {}
_SAMPLE = 1 << 20


def _weights(length):
    if length not in _WEIGHTS:
        if len(_WEIGHTS) > 64:
            _WEIGHTS.clear()
        _WEIGHTS[length] = torch.cos(torch.arange(length, dtype=torch.float64, device="cpu") * 1.7 + 0.3)
    return _WEIGHTS[length]


def fingerprint(tensor):
    """[norm, projection] of a tensor in double precision; two tensors of equal bits have equal fingerprints."""
    flat = tensor.detach()
    if flat.is_sparse:
        flat = flat.to_dense()
    if flat.is_complex():
        flat = torch.view_as_real(flat)
    flat = flat.reshape(-1)
    if flat.numel() == 0 or flat.is_meta:
        return [0.0, 0.0]
    if flat.numel() > _SAMPLE:
        flat = flat[:: flat.numel() // _SAMPLE + 1]
    flat = flat.to("cpu", torch.float64)  # always the same sum, also where a device's is not
    return [number(flat.norm()), number(flat @ _weights(flat.numel()))]


def gradient_norm(parameter):
    gradient = parameter.grad
    if gradient is None:
        return None
    if gradient.is_sparse:
        gradient = gradient.coalesce().values()
    return number(torch.linalg.vector_norm(gradient.detach().reshape(-1).abs().to(torch.float64)))


def loss_values(roots):
    return [number(r.detach().to(torch.float64).sum()) if not r.is_complex() else 0.0 for r in roots]
