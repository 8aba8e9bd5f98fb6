"""A server that speaks the runner's protocol and runs plain Python programs: no torch, so tests are fast.

Payload: ``program``, Python source that is executed in a forked child, with ``say(event)`` to write an event.
"""

import contextlib
import ctypes
import json
import os
import platform
import resource
import select
import signal
import sys
import traceback

runs = {}


def tell(message):
    os.write(1, json.dumps(message).encode() + b"\n")


def children():
    me = os.getpid()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                if int(file.read().rpartition(b")")[2].split()[1]) == me:
                    found.append(int(name))
    return found


def kill(pid):
    for number in (signal.SIGSTOP, signal.SIGKILL):
        with contextlib.suppress(OSError):
            os.killpg(pid, number)


def end_orphans():
    known = set(runs.values())
    for pid in children():
        if pid not in known:
            kill(pid)
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def child(request):
    os.setpgid(0, 0)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    events = os.open(request["events"], flags)
    streams = (
        os.open(os.devnull, os.O_RDONLY),
        os.open(request["stdout"], flags),
        os.open(request["stderr"], flags),
    )
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for name, value in request.get("rlimits", {}).items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (value, value))
    os.chdir(request["cwd"])
    os.environ["TMPDIR"] = request["temp"]

    def say(event):
        os.write(events, json.dumps(event).encode() + b"\n")

    names = {"__name__": "__main__", "say": say, "request": request, "events": events}
    exec(compile(request["program"], "program", "exec"), names)


def start(request):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            child(request)
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(code)
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)
    runs[request["id"]] = pid
    tell({"started": request["id"], "pid": pid})


def reap():
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            for name, known in list(runs.items()):
                if known == pid:
                    kill(pid)
                    del runs[name]
                    end_orphans()
                    tell({"ended": name, "status": os.waitstatus_to_exitcode(status)})


def main():
    mode = os.environ.get("STUB", "")
    if mode == "crash":
        sys.exit("the stub was told to crash")
    if mode == "no-torch":
        tell({"ready": False, "error": "no-torch", "detail": "No module named 'torch'"})
        return
    if mode == "silent":
        sys.stdin.read()
        return
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    woken, waker = os.pipe()
    for end in (woken, waker):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    tell({"ready": True, "python": platform.python_version(), "torch": "0.0", "cuda": None})
    pending = b""
    while True:
        readable, _, _ = select.select([0, woken], [], [])
        if woken in readable:
            with contextlib.suppress(BlockingIOError):
                os.read(woken, 4096)
            reap()
        if 0 in readable:
            chunk = os.read(0, 1 << 16)
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if "kill" in message:
                    if message["kill"] in runs:
                        kill(runs[message["kill"]])
                elif "quit" in message:
                    chunk = b""
                else:
                    start(message)
            if not chunk:
                for pid in runs.values():
                    kill(pid)
                end_orphans()
                return


main()
