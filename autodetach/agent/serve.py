"""The server that the parent starts in the user's interpreter: imports torch once, forks one child a run.

Requests and answers are JSON objects, one a line, on standard input and output. A request
``{"id", "folder", "cwd", "events", "stdout", "stderr", "mode", …}`` is answered by
``{"started": id, "pid": number}`` and later ``{"ended": id, "status": exit status or minus the signal}``;
``{"kill": id}`` ends a run's whole process tree; ``{"quit": true}`` or the end of input ends the server and every run.
What is no request is answered by ``{"error": …}``; a run that cannot be started ends with the status null.
"""

import ctypes
import gc
import importlib.util
import json
import os
import resource
import select
import signal
import sys
import tempfile
from time import monotonic, sleep

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "_autodetach_agent"
MINIMUM = (2, 1)
STACK = 120 << 20
"""Bytes: what Linux leaves free below the stack of a process, whatever its limit was when it started."""
DYING = 5.0
"""Seconds that processes may take to be gone once they were killed."""
CUDA_SECONDS = 60
"""How long a CUDA device may take to answer."""
# The program may put functions of its own in the place of these. A run that cannot leave would go on as a second
# server, and one that does not know its own number would take all processes for its orphans.
_exit, _getpid, _kill, _killpg, _fork, _waitpid = os._exit, os.getpid, os.kill, os.killpg, os.fork, os.waitpid


def say(out, **message):
    os.write(out, (json.dumps(message) + "\n").encode())


def as_request(line):
    """A line's JSON object; an empty one where it is none."""
    try:
        request = json.loads(line)
    except ValueError:
        return {}
    return request if isinstance(request, dict) else {}


def load_package():
    """This folder as a package under a private name, whatever the user's path holds."""
    spec = importlib.util.spec_from_file_location(
        PACKAGE, os.path.join(HERE, "__init__.py"), submodule_search_locations=[HERE]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)


def become_subreaper():
    """Orphans of a run are handed to this process, so that it can end them."""
    prctl(36, 1)


def prctl(option, value):
    try:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):
        pass


def descendants(root):
    """Process numbers below ``root``, read from /proc; empty where there is none."""
    children = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    parent = int(file.read().rsplit(")", 1)[1].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    found, todo = [], [root]
    while todo:
        for child in children.get(todo.pop(), ()):
            found.append(child)
            todo.append(child)
    return found


def is_alive(pid):
    """Whether a process is more than an exit status."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


class Server:
    def __init__(self, out, dynamo_wanted):
        self.out = out
        self.dynamo_wanted = dynamo_wanted
        self.pid = _getpid()
        self.runs = {}  # process number -> run's id
        self.over = {}

    def start(self, request):
        if self.dynamo_wanted():  # an earlier run needed it: this one will, too
            import_dynamo()
        reader, writer = os.pipe()
        try:
            pid = _fork()
        except OSError as error:
            os.close(reader)
            os.close(writer)
            say(self.out, ended=request["id"], status=None, error=str(error))
            return
        if pid == 0:
            os.close(writer)
            self._child(request, reader)
        os.close(reader)
        self.runs[pid] = request["id"]
        say(self.out, started=request["id"], pid=pid)
        os.close(writer)  # the child goes on once the parent knows it started

    def _child(self, request, gate):
        status = 70
        try:
            os.setsid()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.set_wakeup_fd(-1)
            os.read(gate, 1)
            os.close(gate)
            null = os.open(os.devnull, os.O_RDONLY)
            out = os.open(request["stdout"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            err = os.open(request["stderr"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(null, 0)
            os.dup2(out, 1)
            os.dup2(err, 2)
            os.closerange(3, 256)
            self._new_streams()
            self._deeper_stack()
            for name, value in (request.get("rlimits") or {}).items():
                kind = getattr(resource, f"RLIMIT_{name.upper()}", None)
                if kind is not None:
                    hard = resource.getrlimit(kind)[1]
                    value = int(value) if hard == resource.RLIM_INFINITY else min(int(value), hard)
                    resource.setrlimit(kind, (value, hard))
            if request.get("temp"):
                os.environ["TMPDIR"] = tempfile.tempdir = request["temp"]
            os.chdir(request["cwd"])
            from _autodetach_agent.run import run

            status = run(request)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            try:
                for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
                    try:
                        stream.flush()
                    except Exception:
                        pass
                if status < 0:
                    signal.signal(-status, signal.SIG_DFL)
                    _kill(_getpid(), -status)
            finally:
                try:
                    _exit(status)
                finally:
                    _exit(1)  # in no case does a run go on as a server

    @staticmethod
    def _deeper_stack():
        """Once Python has looked at the nodes of a graph, torch lets go of them one inside the other: a graph of a
        hundred thousand would not fit into the usual stack any more."""
        soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
        if soft != resource.RLIM_INFINITY and soft < STACK and (hard == resource.RLIM_INFINITY or hard >= STACK):
            resource.setrlimit(resource.RLIMIT_STACK, (STACK, hard))

    @staticmethod
    def _new_streams():
        """Python's own three, unread and unwritten, with the encodings that the environment asks for."""
        kept = sys.__stdin__, sys.__stdout__, sys.__stderr__
        styles = [{"encoding": s.encoding, "errors": s.errors, "closefd": False} for s in kept]
        sys.stdin = sys.__stdin__ = open(0, **styles[0])
        sys.stdout = sys.__stdout__ = open(1, "w", **styles[1])
        sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, **styles[2])

    def kill(self, identity):
        for pid, name in list(self.runs.items()):
            if name == identity:
                self._kill_tree(pid)

    def _kill_tree(self, pid):
        for _ in range(50):  # a fork bomb makes new ones while we read: stop first, then end
            tree = descendants(pid)
            for process in tree:
                self._signal(process, signal.SIGSTOP)
            if set(descendants(pid)) <= set(tree):
                break
        try:
            _killpg(pid, signal.SIGKILL)
        except OSError:
            pass
        for process in [pid, *tree]:
            self._signal(process, signal.SIGKILL)

    @staticmethod
    def _signal(pid, number):
        try:
            _kill(pid, number)
        except OSError:
            pass

    def reap(self):
        while True:
            try:
                pid, status = _waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            identity = self.runs.pop(pid, None)
            if identity is not None:
                try:
                    _killpg(pid, signal.SIGKILL)  # background children of a run do not outlive it
                except OSError:
                    pass
                if not self.runs:
                    self._end_orphans()
                say(self.out, ended=identity, status=os.waitstatus_to_exitcode(status))

    def _end_orphans(self):
        if _getpid() != self.pid:
            _exit(1)  # whoever got here is a run, not the server
        # A process is a while in dying, and until then would count as one of the next run's.
        deadline = monotonic() + DYING
        while (orphans := [*filter(is_alive, descendants(self.pid))]) and monotonic() < deadline:
            for process in orphans:
                self._signal(process, signal.SIGKILL)
            sleep(0.002)

    def serve(self):
        wake, poke = os.pipe()
        os.set_blocking(poke, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(poke, warn_on_full_buffer=False)
        pending = b""
        while True:
            ready, _, _ = select.select([0, wake], [], [], 5.0)
            if wake in ready:
                try:
                    os.read(wake, 4096)
                except OSError:
                    pass
            self.reap()
            if 0 not in ready:
                continue
            data = os.read(0, 1 << 16)
            if not data:
                break
            pending += data
            *lines, pending = pending.split(b"\n")
            for line in lines:
                request = as_request(line)
                if request.get("quit"):
                    return
                if "kill" in request:
                    self.kill(request["kill"])
                elif "id" in request:
                    self.start(request)
                else:
                    say(self.out, error="no request", line=line[:200].decode("utf-8", "replace"))


def main():
    """``serve.py [PLAN]``: a JSON object of ``program`` (see ``ahead.imports``), whose imports are made once for all
    runs, and ``without``, the ways of being faster to leave out (docs/developing.md)."""
    plan = as_request(sys.argv[1]) if len(sys.argv) > 1 else {}
    without = plan.get("without") or ()
    out = os.dup(1)
    os.set_inheritable(out, False)
    os.dup2(2, 1)  # whatever torch prints while it is imported is no answer of ours
    if sys.path and os.path.abspath(sys.path[0] or ".") == HERE:
        del sys.path[0]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when a terminal's Ctrl-C ends the runs
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < (3, 11):
        say(out, ready=False, error="old-python", detail=version, python=version)
        return 1
    try:
        import torch
    except Exception as error:
        say(out, ready=False, error="no-torch", detail=f"{type(error).__name__}: {error}", python=version)
        return 1
    if not hasattr(torch, "__version__"):
        place = getattr(torch, "__file__", None) or next(iter(torch.__path__), "")
        say(out, ready=False, error="no-torch", detail=f"{place} is not PyTorch", python=version)
        return 1
    release = tuple(int(p) for p in torch.__version__.split("+")[0].split(".")[:2] if p.isdigit())
    if release < MINIMUM:
        say(out, ready=False, error="old-torch", detail=torch.__version__, python=version)
        return 1
    load_package()
    import importlib

    importlib.import_module(f"{PACKAGE}.run")
    dynamo = importlib.import_module(f"{PACKAGE}.dynamo")
    if "dynamo" not in without:
        dynamo.install()
    else:
        import_dynamo()
    if plan.get("program") and "imports" not in without:
        import_ahead(plan["program"])
    become_subreaper()
    gc.collect()
    gc.freeze()  # torch's own objects are no garbage of the program's: a run's collections need not look at them
    say(out, ready=True, python=version, torch=torch.__version__, cuda=cuda_devices(torch))
    server = Server(out, dynamo.wanted)
    try:
        server.serve()
    finally:
        server._end_orphans()
    return 0


def import_ahead(program):
    """Fork a process that makes the program's imports and serves in our place; we serve where it cannot."""
    from _autodetach_agent import ahead, hooks

    hooks.prepare()
    if not ahead.wanted(program)[1]:
        return
    reader, writer = os.pipe()
    pid = _fork()
    if pid == 0:
        os.close(reader)
        prctl(1, signal.SIGKILL)  # it ends with us
        try:
            ahead.make(program)
        except BaseException as error:
            sys.stderr.write(f"no imports ahead: {type(error).__name__}: {error}\n")
            sys.stderr.flush()
            _exit(1)
        os.write(writer, b"1")
        os.close(writer)
        return
    os.close(writer)
    made = select.select([reader], [], [], ahead.LONGEST)[0] and os.read(reader, 1)
    os.close(reader)
    if made:
        _exit(os.waitstatus_to_exitcode(_waitpid(pid, 0)[1]) & 0xFF)
    for process in [*descendants(pid), pid]:
        Server._signal(process, signal.SIGKILL)
    _waitpid(pid, 0)


def cuda_devices(torch):
    """The names of the CUDA devices that torch can use; None where it is built without CUDA.

    Asked in a child, for a process that has initialised CUDA cannot fork one that uses it.
    """
    if torch.version.cuda is None and torch.version.hip is None:
        return None
    reader, writer = os.pipe()
    pid = _fork()
    if pid == 0:
        try:
            names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
            os.write(writer, json.dumps(names).encode())
        finally:
            _exit(0)
    os.close(writer)
    said = b""
    while select.select([reader], [], [], CUDA_SECONDS)[0] and (part := os.read(reader, 1 << 16)):
        said += part
    os.close(reader)
    try:
        _kill(pid, signal.SIGKILL)
    except OSError:
        pass
    _waitpid(pid, 0)
    try:
        return json.loads(said)
    except ValueError:
        return []


def import_dynamo():
    """Every program's first optimizer step would; here it is once."""
    try:
        from torch._dynamo import config  # noqa: F401
    except Exception:
        pass


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    _exit(status)  # nothing is left to do, and taking torch apart module by module takes a while
