"""Runs a script or a module as ``python`` would: argv, ``sys.path[0]``, ``__file__``, ``__spec__``, exit status."""

import importlib.util
import io
import os
import runpy
import sys
import traceback
import types

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


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
        """Run to the end; returns (exit status, traceback text or "")."""
        try:
            if self.module:
                self._run_module(compile_source)
            else:
                self._run_script(compile_source)
        except SystemExit as leaving:
            return self._status(leaving.code), ""
        except BaseException as error:
            text = "".join(self._own_frames_hidden(error))
            sys.stderr.write(text)
            return 1, text
        return 0, ""

    def _run_script(self, compile_source):
        path = self.script
        sys.argv[:] = [path, *self.arguments]
        sys.path[0:0] = [os.path.dirname(os.path.abspath(path))]
        if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
            runpy.run_path(path, run_name="__main__")
            return
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
        main = types.ModuleType("__main__")
        main.__dict__.update(__file__=path, __builtins__=__builtins__, __cached__=None, __spec__=None, __package__=None)
        sys.modules["__main__"] = main
        code = (compile_source or _compile)(os.path.abspath(path), source)
        exec(code, main.__dict__)

    def _run_module(self, compile_source):
        sys.path[0:0] = [os.getcwd()]
        name = self.module
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name, spec = f"{name}.__main__", importlib.util.find_spec(f"{name}.__main__")
        if spec is None or spec.loader is None or not spec.has_location:
            raise SystemExit(f"{sys.executable}: No module named {self.module}")
        sys.argv[:] = [spec.origin, *self.arguments]
        with io.open_code(spec.origin) as file:
            source = file.read()
        main = types.ModuleType("__main__")
        main.__dict__.update(
            __file__=spec.origin, __builtins__=__builtins__, __cached__=spec.cached, __spec__=spec,
            __loader__=spec.loader, __package__=spec.parent,
        )  # fmt: skip
        sys.modules["__main__"] = main
        exec((compile_source or _compile)(spec.origin, source), main.__dict__)

    @staticmethod
    def _status(code):
        if code is None:
            return 0
        if isinstance(code, int):
            return code & 0xFF
        sys.stderr.write(f"{code}\n")
        return 1

    @staticmethod
    def _own_frames_hidden(error):
        """The user's traceback, without the frames of this agent."""
        report = traceback.TracebackException.from_exception(error, compact=True)
        todo, seen = [report], set()
        while todo:
            item = todo.pop()
            if item is None or id(item) in seen:
                continue
            seen.add(id(item))
            item.stack[:] = [f for f in item.stack if not f.filename.startswith(HERE)]
            todo += [item.__cause__, item.__context__, *(getattr(item, "exceptions", None) or ())]
        return report.format()


def _compile(path, source):
    return compile(source, path, "exec", dont_inherit=True)
