"""Programs that are written for CUDA, on a machine that has none: what they say of CUDA, and what it means here.

============================================  ======================================================================
the program                                   on the CPU
============================================  ======================================================================
``x.cuda()``, ``x.to("cuda:1")``, ``.to(0)``  a copy, as it would be there; ``x`` itself if it is there already
``device="cuda"`` in any call                 the CPU
``x.cpu()``, ``x.to("cpu")``                  a copy where ``x`` came from there, else ``x`` itself
``x.device``, ``x.is_cuda``, ``x.type()``     what it would be there; torch's own code is told what it is here
``.type("torch.cuda.FloatTensor")``           as ``.cuda()``, in that precision; ``torch.cuda.FloatTensor(…)`` likewise
``torch.cuda.is_available()`` and the like    one device, number 0, of no memory in use; torch's own code hears of none
seeds of CUDA                                 nothing: all numbers come from the CPU's generator, which is seeded anyway
streams, events, ``synchronize``, nvtx        nothing, in order; events tell the time
``autocast("cuda")``, ``GradScaler``          those of the CPU, in the same precision
half precision                                half, and float32 for calls that have no kernel in half on the CPU
``pin_memory``                                nothing
``torch.load`` of what was saved there        on the CPU, taken for being there
``nn.DataParallel``                           the module by itself
``torch.Generator("cuda")``                   one of the CPU
``set_default_device("cuda")``                remembered, done on the CPU
============================================  ======================================================================

Every tensor that would lie on a CUDA device is known by a weak reference; what is computed from it is there, too.
Not known are gradients inside hooks and what reaches the program otherwise than by a call: they count as on the CPU.
Graphs of CUDA calls, custom CUDA code and what speaks to the driver directly fail here as they do without this.
"""

import functools
import os
import sys

import torch

from . import cuda_elsewhere, cuda_module
from .redirection import RedirectedMode, Redirection, is_torchs


def redirected_mode(wire):
    """Patch torch; returns the class of the mode that the program's threads run under."""
    redirection = Redirection(wire)
    for patch in (*cuda_module.PATCHES, *cuda_elsewhere.PATCHES):
        patch(redirection)
    return type("RedirectedMode", (RedirectedMode,), {"redirection": redirection})


def watch(wire):
    """Tell once that the program asks for CUDA, and leave it with torch's own answer."""
    told = []

    def watched(plain, name, whoever):
        @functools.wraps(plain)
        def asking(*args, **kwargs):
            if not told and (whoever or not is_torchs(sys._getframe(1))):
                told.append(name)
                wire.send("asked", what=name)
            return plain(*args, **kwargs)

        return asking

    for name in ("is_available", "device_count", "_lazy_init"):
        setattr(torch.cuda, name, watched(getattr(torch.cuda, name), f"torch.cuda.{name}", name == "_lazy_init"))


def choose(wanted):
    """``cpu`` hides every GPU from the program, ``cuda:N`` all but one; CUDA reads this when it is first used."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if wanted == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    elif wanted.startswith("cuda:"):
        number, among = wanted.partition(":")[2], [one for one in visible.split(",") if one]
        os.environ["CUDA_VISIBLE_DEVICES"] = among[int(number)] if int(number) < len(among) else number
    if wanted != "cpu" and torch.version.cuda is not None:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else two runs may differ in their last bits
