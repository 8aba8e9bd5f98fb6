"""Type hints for the parameters whose types are known."""

from __future__ import annotations

import re

from .names import Names

_TYPES = {
    "model": "nn.Module",
    "optimizer": "torch.optim.Optimizer",
    "x": "torch.Tensor",
    "y": "torch.Tensor",
    "h": "torch.Tensor",
    "c": "torch.Tensor",
}
_SIZES = dict.fromkeys(("inputs", "hidden", "outputs", "count", "size"), "int")


def annotate(text: str, names: Names) -> str:
    """Annotate the parameters whose types are known."""
    tensors = {names[key]: hint for key, hint in _TYPES.items()}

    def with_types(found: re.Match[str]) -> str:
        types = _SIZES if found[1].endswith(("__init__", "make_batches")) else tensors
        parameters = [f"{p}: {types[p]}" if p in types else p for p in (q.strip() for q in found[2].split(","))]
        returns = " -> None" if found[1].endswith("__init__") else ""
        return f"{found[1]}({', '.join(parameters)}){returns}:"

    return re.sub(r"^( *def \w+)\(([^()=]*)\):$", with_types, text, flags=re.MULTILINE)
