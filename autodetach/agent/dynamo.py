"""A stand-in for ``torch._dynamo``, which the first step of every optimizer imports: a second, and for nothing.

Code that is not compiled asks two things of it: that a function be left uncompiled (``disable``), and that a graph be
broken off (``graph_break``). With no compiler in the process there is nothing to do for either. Whatever else is asked
of the stand-in brings in the real module, as if it had never been there.
"""

import importlib
import importlib.machinery
import mmap
import sys
import types

import torch

NAME = "torch._dynamo"


class StandIn(types.ModuleType):
    def __init__(self):
        super().__init__(NAME)
        self.__dict__["_given"] = []  # functions that were left as they are
        self.__dict__["_wanted"] = mmap.mmap(-1, 1)  # shared with forked children, who tell that they needed the real

    def disable(self, fn=None, recursive=True, **more):
        if fn is None:
            return lambda fn: self.disable(fn, recursive, **more)
        self._given.append(fn)
        return fn

    def graph_break(self, *_, **__):
        pass

    def __getattr__(self, name):
        return getattr(real(), name)


class _Submodules:
    """Finds ``torch._dynamo.something`` while the stand-in is there: in the real module."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        if not fullname.startswith(NAME + "."):
            return None
        real()
        known = sys.modules.get(fullname)
        return None if known is None else importlib.machinery.ModuleSpec(fullname, _Known(known))


class _Known:
    """Loads a module that the real one has imported meanwhile: by leaving it as it is."""

    def __init__(self, module):
        self._module, self._spec, self._loader = module, module.__spec__, module.__loader__

    def create_module(self, spec):
        return self._module

    def exec_module(self, module):
        module.__spec__, module.__loader__ = self._spec, self._loader


def install():
    """Put the stand-in where the module would be. Does nothing where the real one is there already."""
    if NAME not in sys.modules:
        sys.modules[NAME] = torch._dynamo = StandIn()
        sys.meta_path.insert(0, _Submodules)


def wanted():
    """Whether a child of this process needed the real module."""
    module = sys.modules.get(NAME)
    return isinstance(module, StandIn) and module._wanted[0] == 1


def real():
    """The real module, in the stand-in's place from now on. Raises what its import raises."""
    stand_in = sys.modules.get(NAME)
    if not isinstance(stand_in, StandIn):
        return sys.modules[NAME]
    stand_in._wanted[0] = 1
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not _Submodules]
    del sys.modules[NAME], torch._dynamo
    for fn in stand_in._given:  # torch keeps what it was given; from now on it has to ask again
        vars(fn).pop("__dynamo_disable", None)
    return importlib.import_module(NAME)
