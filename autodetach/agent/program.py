"""Runs a script or a module as ``python`` would: argv, ``sys.path[0]``, ``__file__``, ``__spec__``, exit status."""

import builtins
import importlib.machinery
import io
import os
import re
import runpy
import signal
import sys
import traceback
import types

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_COOKIE = re.compile(rb"(?:[^\n#]*(?:#[^\n]*)?\n)?[ \t\f]*#.*?coding[:=]")
_DISPATCH = os.path.join("torch", "overrides.py")


class Program:
    """``compile_source(path, source)`` lets a mode compile the program's own files its own way."""

    def __init__(self, request):
        self.module = request.get("module")
        self.script = None if self.module else self._as_given(request)
        self.arguments = list(request.get("argv") or [])

    @staticmethod
    def _as_given(request):
        """The script's path as its user would type it in the run's folder."""
        path = os.path.join(request["folder"], request["entry"])
        inside = os.path.realpath(request["cwd"]).startswith(os.path.realpath(request["folder"]))
        return os.path.relpath(path, request["cwd"]) if inside else path

    def run(self, compile_source=None):
        """Run to the end; returns (exit status or minus a signal, traceback text or "")."""
        try:
            if self.module:
                self._run_module(compile_source)
            else:
                self._run_script(compile_source)
        except SystemExit as leaving:
            return self._status(leaving.code), ""
        except BaseException as error:
            hide_own_frames(error)
            text = "".join(traceback.format_exception(error))
            _tell_hook(error)
            return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1, text
        return 0, ""

    def _run_script(self, compile_source):
        path = os.path.abspath(self.script)
        sys.argv[:] = [self.script, *self.arguments]
        sys.path[0:0] = [os.path.dirname(path)]
        with io.open_code(path) as file:
            source = file.read()
        _insist_on_encoding(path, source)
        loader = importlib.machinery.SourceFileLoader("__main__", path)
        main = _new_main(__file__=path, __cached__=None, __loader__=loader)
        exec((compile_source or _compile)(path, source), main.__dict__)

    def _run_module(self, compile_source):
        sys.argv[:] = ["-m", *self.arguments]
        sys.path[0:0] = [os.getcwd()]
        try:
            _, spec, code = runpy._get_module_details(self.module, _NotFound)
        except _NotFound as error:
            raise SystemExit(f"{sys.executable}: {error}") from None
        sys.argv[0] = spec.origin
        if compile_source is not None and spec.has_location:
            with io.open_code(spec.origin) as file:
                code = compile_source(spec.origin, file.read())
        main = _new_main(
            __file__=spec.origin,
            __cached__=spec.cached,
            __loader__=spec.loader,
            __spec__=spec,
            __package__=spec.parent,
        )
        exec(code, main.__dict__)

    @staticmethod
    def _status(code):
        if code is None:
            return 0
        if isinstance(code, int):
            return code & 0xFF
        sys.stderr.write(f"{code}\n")
        return 1


class _NotFound(ImportError):
    """A module that ``python -m`` cannot run."""


def _new_main(**names):
    main = types.ModuleType("__main__")
    vars(main).update(__builtins__=builtins, **names)
    if sys.version_info < (3, 14):
        vars(main)["__annotations__"] = {}
    sys.modules["__main__"] = main
    return main


def _compile(path, source):
    return compile(source, path, "exec", dont_inherit=True)


def _insist_on_encoding(path, source):
    """``python`` refuses a script that is no UTF-8 and names no other encoding; ``compile`` may let it pass."""
    try:
        source.decode("utf-8")
    except UnicodeDecodeError as error:
        if _COOKIE.match(source) is None:
            line = source.count(b"\n", 0, error.start) + 1
            raise SyntaxError(
                f"Non-UTF-8 code starting with '\\x{source[error.start]:02x}' in file {path} on line {line}, but no "
                "encoding declared; see https://peps.python.org/pep-0263/ for details"
            ) from None


def _tell_hook(error):
    """Show an error as the interpreter would: by the program's own hook, if it has set one."""
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except BaseException as broken:
        hide_own_frames(broken)
        broken.__context__ = None
        sys.stderr.write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(broken), broken, broken.__traceback__)
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(type(error), error, error.__traceback__)


def hide_own_frames(error):
    """Take this agent out of the tracebacks of an error and of those behind it."""
    todo, seen = [error], set()
    while todo:
        each = todo.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = _without_own(each.__traceback__)
            todo += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]


def _without_own(trace):
    """The traceback without our frames, nor torch's own on the way to us (a function that dispatches to itself)."""
    kept, ours = [], False
    while trace is not None:
        code = trace.tb_frame.f_code
        own = code.co_filename.startswith(HERE)
        if not own:
            if ours and kept and kept[-1].tb_frame.f_code.co_filename.endswith(_DISPATCH):
                kept.pop()
                if kept and kept[-1].tb_frame.f_code is code:
                    kept.pop()
            kept.append(trace)
        ours = own
        trace = trace.tb_next
    if kept and kept[0].tb_frame.f_code.co_filename == "<frozen runpy>":
        kept = [t for t in kept if t.tb_frame.f_code.co_filename != "<frozen runpy>"]
    for i, each in enumerate(kept):
        each.tb_next = kept[i + 1] if i + 1 < len(kept) else None
    return kept[0] if kept else None
