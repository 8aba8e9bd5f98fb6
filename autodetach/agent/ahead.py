"""The program's own imports of installed packages, made once by the server instead of once in every run.

Taken are the imports that the program makes before it does anything else: those at the top of the script, and at the
top of the project's modules that it imports there. Nothing of the project is imported, for each run has its own copy.
What was imported must be the same as in a run of its own. So a fork of the server makes the imports and notes what
could make a difference (:func:`_traces`, :func:`_as_in_a_run`). Where anything of that happened, or an import fails,
hangs or crashes, the fork ends, and the server goes on as if nothing had been imported.
"""

import ast
import contextlib
import importlib.util
import os
import random
import signal
import sys
import threading
import types

import torch

from .births import sequence

LONGEST = 60.0
"""Seconds for all imports; one that hangs is for a run to find out, which has a limit of its own."""

NOTED = "_autodetach_noted"


class Different(Exception):
    """Something happened that every run must see for itself."""


def imports(program):
    """[(module, names, whether a failure is caught), ...] that the program imports of installed packages, in order.

    ``program``: root, entry (a path below it, or a module's name), module (whether it is one), cwd.
    """
    root, cwd = os.path.realpath(program["root"]), program["cwd"]
    if program.get("module"):
        first = cwd
        name = program["entry"]
        files = [_project_file(name, first)]
        if files[0] is not None and os.path.basename(files[0]) == "__init__.py":
            files.append(_project_file(f"{name}.__main__", first))
        parents = [_project_file(p, first) for p in _parents_of(name)]
        files = [f for f in (*parents, *files) if f is not None]
    else:
        files = [os.path.join(root, program["entry"])]
        first = os.path.dirname(os.path.realpath(files[0]))
    return first, list(_Top(root, first).read_all(files))


class _Top:
    def __init__(self, root, first):
        self.root, self.first = root + os.sep, first
        self._seen = set()

    def read_all(self, files):
        for file in files:
            if not (yield from self.read(file)):
                return

    def read(self, file):
        """The imports at the top of a file; returns whether the file does nothing else when it is imported."""
        if file in self._seen:
            return True
        self._seen.add(file)
        try:
            with open(file, "rb") as source:
                tree = ast.parse(source.read(), file)
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            return False
        return (yield from self._statements(tree.body, file, False))

    def _statements(self, statements, file, caught):
        for each in statements:
            if isinstance(each, ast.Import):
                wanted = [(alias.name, ()) for alias in each.names]
            elif isinstance(each, ast.ImportFrom):
                wanted = [(each, tuple(alias.name for alias in each.names))]
            elif isinstance(each, ast.Try):
                if not (yield from self._statements(each.body, file, True)):
                    return False
                continue
            elif _does_nothing(each):
                continue
            else:
                return False
            for name, names in wanted:
                if not (yield from self._one(name, names, file, caught)):
                    return False
        return True

    def _one(self, name, names, file, caught):
        if isinstance(name, ast.ImportFrom):
            if name.level:
                folder = file
                for _ in range(name.level):
                    folder = os.path.dirname(folder)
                return (yield from self._of_project(name.module or "", names, folder))
            name = name.module
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or name == "__future__":
            return True
        if _project_file(top, self.first) is not None or os.path.isdir(os.path.join(self.first, top)):
            return (yield from self._of_project(name, names, self.first))
        try:
            spec = importlib.util.find_spec(top)
        except (ImportError, ValueError, AttributeError):
            return False
        if spec is None:
            return caught  # the program will see that it is missing
        places = [spec.origin or "", *(spec.submodule_search_locations or ())]
        if any(os.path.realpath(place).startswith(self.root) and "site-packages" not in place for place in places):
            return False  # an editable install of the project: not where we would look
        yield name, names, caught
        return True

    def _of_project(self, name, names, folder):
        """A module of the project, its packages first, and those of its names that are modules, too."""
        modules = [*_parents_of(name), *([name] if name else [])]
        modules += [f"{name}.{each}" if name else each for each in names]
        for module in modules:
            found = _project_file(module, folder)
            if found is not None and not (yield from self.read(found)):
                return False
        return True


def _parents_of(name):
    parts = name.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts))]


def _project_file(name, folder):
    place = os.path.join(folder, *name.split("."))
    return next((f for f in (os.path.join(place, "__init__.py"), place + ".py") if os.path.isfile(f)), None)


def _does_nothing(statement):
    """Whether a statement cannot change what a later import does."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return not statement.decorator_list
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return all(isinstance(t, ast.Name) for t in targets) and _is_literal(statement.value)
    if isinstance(statement, ast.If):
        test = statement.test
        return not statement.orelse and getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"
    return isinstance(statement, ast.Pass)


def _is_literal(value):
    return value is None or all(
        isinstance(n, (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Load, ast.UnaryOp, ast.USub))
        for n in ast.walk(value)
    )


def wanted(program):
    """(the folder that is first on the program's path, what of its imports is not there yet)."""
    first, found = imports(program)
    return first, [one for one in found if one[0] not in sys.modules or any(not _is_there(one[0], n) for n in one[1])]


def _is_there(module, name):
    return name == "*" or name in vars(sys.modules[module]) or f"{module}.{name}" in sys.modules


def make(program):
    """Import what ``wanted`` finds. Raises Different, or what an import raises that the program does not catch."""
    first, missing = wanted(program)
    known = set(sys.modules)
    before = _traces()
    with _as_in_a_run(program, first) as asked:
        for name, names, caught in missing:
            try:
                __import__(name, {}, {}, names)
            except ImportError:
                if not caught:
                    raise
    if asked:
        raise Different(f"an import asked for {', '.join(sorted(asked))}")
    changed = [name for (name, old), new in zip(before.items(), _traces().values(), strict=True) if old != new]
    if changed:
        raise Different(f"an import changed {', '.join(changed)}")
    root = os.path.realpath(program["root"]) + os.sep
    for name in set(sys.modules) - known:
        if any(
            type(value) is types.FunctionType and hasattr(value, NOTED) for value in vars(sys.modules[name]).values()
        ):
            raise Different(f"{name} keeps a question to CUDA for later")
        place = getattr(sys.modules[name], "__file__", None) or ""
        if os.path.realpath(place).startswith(root) and "site-packages" not in place:
            raise Different(f"{name} belongs to the project")


def _traces():
    """What an import could change, and a run would not see changed, or see changed differently."""
    pid = os.fork()  # libraries that know of forks end their threads at one
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    numpy = sys.modules.get("numpy")
    return {
        "random numbers": (random.getstate(), torch.get_rng_state().tolist()),
        "random numbers of numpy": repr(numpy.random.get_state()) if numpy is not None else "",
        "the graph": sequence(),
        "CUDA": torch.cuda.is_initialized(),
        "threads": _threads(),
        "open files": _open_files(),
        "the working directory": os.getcwd(),
        "temporary files": sorted(os.listdir(os.environ.get("TMPDIR") or "/tmp")),
        "standard streams": (sys.stdin, sys.stdout, sys.stderr),
        "signals": [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
        "its limits": _limits(),
    }


def _threads():
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _open_files():
    try:
        return sorted(n for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
    except OSError:
        return []


def _limits():
    import resource

    return [resource.getrlimit(n) for n in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU)]


@contextlib.contextmanager
def _as_in_a_run(program, first):
    """What an import sees of the program that it is made for; yields the set of what it asked for that differs."""
    asked = set()
    kept = sys.argv[:], sys.modules["__main__"], os.getcwd(), list(sys.path)
    main = types.ModuleType("__main__")
    sys.argv[:] = ["-m" if program.get("module") else os.path.basename(program["entry"]), *(program.get("argv") or ())]
    sys.path.insert(0, first)
    sys.modules["__main__"] = main

    def noting(owner, name, what):
        plain = getattr(owner, name)

        def call(*args, **kwargs):
            asked.add(what)
            return plain(*args, **kwargs)

        if what == "CUDA":
            setattr(call, NOTED, True)
        setattr(owner, name, call)
        return owner, name, plain

    # each run stands in a folder of its own, and may be shown other devices
    noted = [noting(os, name, "its folder") for name in ("getcwd", "getcwdb")]
    noted += [noting(torch.cuda, name, "CUDA") for name in ("is_available", "device_count")]
    try:
        os.chdir(program["cwd"])
        yield asked
    finally:
        for owner, name, plain in noted:
            setattr(owner, name, plain)
        os.chdir(kept[2])
        sys.argv[:], sys.modules["__main__"] = kept[0], kept[1]
        with contextlib.suppress(ValueError):
            sys.path.remove(first)
