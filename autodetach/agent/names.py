"""Under which names the user's own functions can reach a tensor."""

import sys

import torch

from .probes import structure

MOST = 8


def own_frames(sites):
    """The frames of the project's files that are under way, innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        shown = sites.shown(frame.f_code)
        if shown is not None and shown[1]:
            yield frame
        frame = frame.f_back


def names_in(frame, tensor):
    """[[code, structure], ...]: local and global names, attributes of ``self`` and of modules that are or hold it."""
    found = []
    scopes = [frame.f_locals] if frame.f_locals is frame.f_globals else [frame.f_locals, frame.f_globals]
    for scope in scopes:
        for name, value in list(scope.items()):
            if _holds(value, tensor):
                found.append([name, structure(value)])
            elif name == "self":
                inside = getattr(value, "__dict__", {})
                found += [[f"self.{k}", structure(v)] for k, v in list(inside.items()) if _holds(v, tensor)]
            if isinstance(value, torch.nn.Module):
                for path, module in value.named_modules():
                    owner = ".".join(filter(None, (name, path)))
                    found += [[f"{owner}.{k}", structure(v)] for k, v in list(vars(module).items()) if v is tensor]
    return found[:MOST]


def _holds(value, tensor, depth=2):
    if value is tensor:
        return True
    if depth and isinstance(value, (list, tuple)) and len(value) <= 4096:
        return any(_holds(v, tensor, depth - 1) for v in value)
    if depth and isinstance(value, dict) and len(value) <= 4096:
        return any(_holds(v, tensor, depth - 1) for v in value.values())
    return False
