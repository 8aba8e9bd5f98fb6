#!/usr/bin/env python3
"""Independent judge of a repair: do two versions of a training program train the same way?

    judge.py record [--max-steps N] [--timeout S] OUT.json ENTRY [ARGS...]   run ENTRY, write its trajectory
    judge.py compare [--losses] GOT.json WANT.json                           exit 0 when they train alike

A trajectory holds, for every optimizer step, random projections of all parameters after the step and which
parameters had a gradient, and (16 samples in the first 40 steps) how many autograd nodes are alive; for every
backward call, the loss. Two programs train the same way when steps and projections agree to a relative 1e-4
and the first program's live graph does not grow where the second's does. With ``--losses`` the losses must
agree as well: for programs that update their parameters by hand and never call an optimizer.

It knows nothing of how a patch was made, needs torch alone, and is run with the program's own Python.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import random
import runpy
import sys
import traceback
import zlib
from pathlib import Path
from typing import Any

RTOL, ATOL = 1e-4, 1e-7

Trajectory = dict[str, Any]


class _Enough(SystemExit):
    """Ends a program that would train for ever, once its trajectory is long enough."""


def record(out: str, entry: str, args: list[str], max_steps: int, timeout: int) -> int:
    """Run ``entry`` as ``__main__`` and write its trajectory to ``out``; 0 when it ran to its end."""
    import signal

    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    random.seed(0)
    torch.manual_seed(0)
    try:
        import numpy

        numpy.random.seed(0)
    except ImportError:
        pass
    log: Trajectory = {"steps": [], "live": [], "backwards": [], "error": None, "ended": False}

    def projections(tensors: list[Any]) -> list[float]:
        result = []
        for i, p in enumerate(tensors):
            flat = p.detach().to("cpu", torch.float64).reshape(-1)
            if flat.is_complex():
                flat = torch.view_as_real(flat).reshape(-1)
            g = torch.Generator().manual_seed(zlib.crc32(b"%d:%d" % (i, flat.numel())))
            w = torch.randn(flat.numel(), generator=g, dtype=torch.float64) / max(flat.numel(), 1) ** 0.5
            result.append(float(flat @ w))
        return result

    def live_nodes() -> int:
        gc.collect()  # nodes that only garbage holds are not alive
        seen = set()
        todo = [o.grad_fn for o in gc.get_objects() if type(o) is torch.Tensor and o.grad_fn is not None]
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                todo.extend(n for n, _ in node.next_functions if n is not None)
        return len(seen)

    def after_step(optimizer: Any, *_: Any) -> None:
        params = [p for group in optimizer.param_groups for p in group["params"]]
        log["steps"].append({"params": projections(params), "grads": [p.grad is not None for p in params]})
        step = len(log["steps"])
        if step <= 8 or (step <= 40 and step % 4 == 0):
            log["live"].append(live_nodes())
        if max_steps and len(log["steps"]) >= max_steps:
            log["ended"] = True
            raise _Enough(0)

    register_optimizer_step_post_hook(after_step)

    plain_backward = torch.autograd.backward

    def backward(tensors: Any, *a: Any, **k: Any) -> None:
        roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        call = {"loss": [float(r.detach().double().sum()) for r in roots]}
        plain_backward(tensors, *a, **k)
        log["backwards"].append(call)

    torch.autograd.backward = backward
    if timeout and hasattr(signal, "alarm"):
        signal.alarm(timeout)
    sys.argv = [entry, *args]
    # the recorder's own names stay out of the program's way
    sys.path[0] = os.path.dirname(os.path.abspath(entry))
    try:
        runpy.run_path(entry, run_name="__main__")
        log["ended"] = True
    except SystemExit as stop:
        log["ended"] = log["ended"] or stop.code in (None, 0)
        if not log["ended"]:
            log["error"] = f"exit {stop.code}"
    except BaseException as error:  # the program's own failure is the result here
        log["error"] = f"{type(error).__name__}: {error}"
        traceback.print_exc()
    Path(out).write_text(json.dumps(log))
    return 0 if log["ended"] else 1


def close(a: Any, b: Any) -> bool:
    """Equal to a relative 1e-4, element by element; NaN equals NaN."""
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float):
        return bool(a == b or (a != a and b != b) or abs(a - b) <= ATOL + RTOL * max(abs(a), abs(b)))
    return bool(a == b)


def grows(live: list[int]) -> bool:
    """Whether the graph held by the whole process keeps growing.

    It does when it rises at most samples of the later half and never falls.
    """
    half = live[len(live) // 2 :]
    pairs = list(itertools.pairwise(half))
    rises = sum(x < y for x, y in pairs)
    return len(half) >= 4 and rises >= 0.6 * (len(half) - 1) and all(x <= y for x, y in pairs)


def compare(got: Trajectory, want: Trajectory, losses: bool = False) -> list[str]:
    """Reasons why `got` does not train as `want` does; empty when it does."""
    if not got["ended"]:
        return [f"does not run to its end: {got['error']}"]
    reasons = []
    if len(got["steps"]) != len(want["steps"]):
        reasons.append(f"{len(got['steps'])} optimizer steps, not {len(want['steps'])}")
    for i, (g, w) in enumerate(zip(got["steps"], want["steps"], strict=False)):
        if g["grads"] != w["grads"]:
            reasons.append(f"step {i + 1}: other parameters receive gradients")
            break
        if not close(g["params"], w["params"]):
            reasons.append(f"step {i + 1}: parameters differ")
            break
    if losses:
        mine, theirs = ([call["loss"] for call in side["backwards"]] for side in (got, want))
        for i, (a, b) in enumerate(zip(mine, theirs, strict=False)):
            if not close(a, b):
                reasons.append(f"backward {i + 1}: losses differ")
                break
        else:
            if len(mine) != len(theirs):
                reasons.append(f"{len(mine)} backward calls, not {len(theirs)}")
    if grows(got["live"]) and not grows(want["live"]):
        reasons.append("the graph grows from step to step")
    return reasons


def main() -> int:
    """The command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = parser.add_subparsers(dest="verb", required=True)
    p = sub.add_parser("record")
    p.add_argument("--max-steps", type=int, default=0)
    p.add_argument("--timeout", type=int, default=120)
    p.add_argument("out")
    p.add_argument("entry")
    p.add_argument("args", nargs=argparse.REMAINDER)
    p = sub.add_parser("compare")
    p.add_argument("--losses", action="store_true")
    p.add_argument("got")
    p.add_argument("want")
    a = parser.parse_args()
    if a.verb == "record":
        return record(os.path.abspath(a.out), a.entry, a.args, a.max_steps, a.timeout)
    got, want = (json.loads(Path(path).read_text()) for path in (a.got, a.want))
    reasons = compare(got, want, a.losses)
    print("same" if not reasons else "differs: " + "; ".join(reasons))
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main())
