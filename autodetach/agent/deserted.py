"""A thread or a child process dies of an error that is none of ours, and all others wait for it for ever.

Whether they do is told by the clock: no process of the run works any more. A program that notices the death goes on,
and is left alone.
"""

import os
import threading
import time
import traceback

QUIET = 3.0
"""Seconds without work."""
IDLE = 0.3
"""Seconds of processor time that waiting may take in the meantime: polling, and this watch itself."""
EVERY = 0.25
_TICK = os.sysconf("SC_CLK_TCK")
_exit, _fork = os._exit, os.fork  # the program may put something else in their place


def thread_died(recorder, error):
    text = "".join(traceback.format_exception(error))
    threading.Thread(target=_watch, args=(recorder, text), daemon=True, name="autodetach-watch").start()


def child_died(recorder):
    """The watch is a process of its own: the child itself goes, as its parent may expect."""
    if _fork() == 0:
        try:
            recorder.wire.speak_for_parent()
            _watch(recorder, "")
        finally:
            _exit(0)


def _watch(recorder, text):
    last, since = _work(), time.monotonic()
    while last is not None:
        time.sleep(EVERY)
        done, now = _work(), time.monotonic()
        if done is None:
            return
        if done - last > IDLE:
            last, since = done, now
        elif now - since > QUIET:
            recorder.finish("error", 1, text)


def _work():
    """Processor seconds of all processes of this run, which share a session; None where they cannot be read."""
    session, total = str(os.getsid(0)), 0
    try:
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/stat") as file:
                        fields = file.read().rpartition(")")[2].split()
                except OSError:
                    continue
                if fields[3] == session:
                    total += sum(map(int, fields[11:15]))
    except (OSError, ValueError, IndexError):
        return None
    return total / _TICK
