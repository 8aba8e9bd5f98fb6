"""One run of the program under one of the modes."""

import functools
import importlib.util
import itertools
import os
import random
import sys
import traceback

import torch

from . import devices, hooks
from .leak import Leaking
from .mend import Mended
from .origins import Origins
from .probes import Probes
from .program import Program
from .recorder import Mode
from .reference import Observer, Reference
from .shadow import Shadow
from .trace import Traced
from .wire import VERSION, Wire

MODES = {
    "observe": Observer,
    "reference": Reference,
    "shadow": Shadow,
    "grad-on": Shadow,
    "mended": Mended,
    "traced": Traced,
    "origins": Origins,
    "leaking": Leaking,
}


def seed():
    """Programs without seeds are seeded: two runs must be comparable. A program's own seeds come later and win.

    Generators that are made without a seed (``random.Random()``, ``numpy.random.default_rng()``) would ask the system
    for one each; they get 1, 2, 3, ...
    """
    numbers = itertools.count(1)
    random.seed(0)
    torch.manual_seed(0)
    plain = random.Random.__init__

    @functools.wraps(plain)
    def init(self, x=None):
        plain(self, next(numbers) if x is None else x)

    random.Random.__init__ = init
    if importlib.util.find_spec("numpy") is not None:
        import numpy
        import numpy.random.bit_generator as bits

        numpy.random.seed(0)
        if hasattr(bits, "randbits"):
            bits.randbits = lambda count: next(numbers)


def run(request):
    """Run the program that ``request`` describes; returns its exit status."""
    seed()
    wire, recorder, compile_source = record(request)
    program = Program(request)
    status, text = program.run(compile_source)
    if not text:
        _leave_like_python()  # what threads and exit handlers still do is part of the run
    _flush()
    try:
        recorder.send_end("error" if text else "exit", status, text)
    except Exception:
        wire.send("agent-error", text=traceback.format_exc(limit=-4))
    wire.send("stop")
    if text:
        _leave_like_python()
    return status


def record(request):
    """Record from now on as ``request`` asks; returns (wire, recorder, how to compile the program or None)."""
    wire = Wire(request["events"])
    wire.send("hello", version=VERSION, pid=os.getpid(), mode=request["mode"])
    map_paths(request)
    devices.choose(request.get("device") or "auto")
    recorder = MODES[request["mode"]](wire, request["folder"], request)
    mode = devices.redirected_mode(wire) if request.get("redirect") else Mode
    if request.get("watch"):
        devices.watch(wire)
    hooks.install(recorder, mode)
    compile_source = None
    if request.get("probes"):
        probes = Probes(recorder)
        probes.install()
        compile_source = probes.compile
        recorder.at_end.append(probes.report)
    # stays entered until the process ends: exit handlers of the program are the program, too
    mode(recorder).__enter__()
    return wire, recorder, compile_source


def _flush():
    """Whoever hears that the run is over may end it at once."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except Exception:
            pass


def _leave_like_python():
    """What an interpreter does at its end and ``os._exit`` does not: wait for threads, call exit handlers."""
    import atexit
    import threading

    try:
        threading._shutdown()
    except Exception:
        pass
    atexit._run_exitfuncs()


def map_paths(request):
    """An editable install points at the user's project; in a run it has to mean the scratch copy."""
    original, copy = request.get("project"), request["folder"]
    if not original:
        return
    original = original.rstrip(os.sep)

    def mapped(path):
        if isinstance(path, str) and (path == original or path.startswith(original + os.sep)):
            inside = path[len(original) :]
            if "site-packages" not in inside:
                return copy + inside
        return path

    sys.path[:] = [mapped(p) for p in sys.path]
    for finder in sys.meta_path:
        table = getattr(sys.modules.get(getattr(finder, "__module__", ""), None), "MAPPING", None)
        if isinstance(table, dict):
            for name, path in list(table.items()):
                table[name] = mapped(path)
    sys.path_importer_cache.clear()
