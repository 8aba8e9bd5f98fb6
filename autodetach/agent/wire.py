"""What a run says to the parent: JSON lines, one event a line. This is the schema, defined once.

==============  ====================================================================================
``event``       fields
==============  ====================================================================================
hello           version, process (0 for the program itself, a child's pid), pid, name (of the child)
site            site (a hash that is the same in every run), chain: [[file, line, column, end line,
                end column, function, editable], ...] innermost first
backward        n, call ("backward" or "grad"), site, steps, loss: [float], retain, create, leaves
step            n, optimizer, params: [[norm, projection]], grads: [norm or null]; of steps long before the failure
                params: null, and for the norms one character each (:func:`trajectory.marks`)
live            n, nodes: autograd nodes alive after garbage collection, old: made before the failure's step
failure         kind, message, site, steps, backwards, call, plus what the graph shows about the root
pair            a stale operand: see :mod:`reference`
place           where a watched tensor passed: see :mod:`probes`
shadow          operations that lost the graph of the failing root: see :mod:`shadow`
written         sites: where something with a graph was written in place, in a run with copies
leak            a kind of tensor that piles up, or whose graph grows: see :mod:`leak`
marked          an operand that was made to require gradients: see :mod:`trace`
mended          an error that was mended on the fly: see :mod:`mend`
looked          sites: makers of leaves whose gradients the program reads
compared        backward, site, leaves: sites of leaves with whose own values a model's output was compared there
frozen          parameters that an optimizer holds and that require no gradient: see :mod:`shadow`
random          sites: where random numbers were drawn
constants       backward, sites: first-order gradients that its root was computed from
zeroed          gradients that were thrown away: optimizer, backwards, site
asked           what: the program asks for CUDA (told where there is none), see :mod:`devices`
redirected      what: something that was meant for CUDA was done on the CPU
device          number, name: a CUDA device that holds tensors of the training
note            text: something the reader should know (a patch that was named, a limit that struck)
agent-error     text: the agent itself failed; the program ran on
end             how ("exit", "error", "stopped"), steps, backwards, status, traceback
stop            the verdict is complete: the parent may end the run
==============  ====================================================================================
"""

import json
import math
import os
import sys

VERSION = 1

# The program may put functions of its own in the place of these.
getpid, write = os.getpid, os.write
encode = json.JSONEncoder(default=str, separators=(",", ":")).encode


class Wire:
    """Writes events to the run's file; each process of the run appends whole lines."""

    def __init__(self, path):
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._pid = getpid()
        self._process = 0

    def send(self, event, **fields):
        pid = getpid()
        if pid != self._pid:  # a forked child speaks under a number of its own
            self._pid, self._process = pid, pid
            names = sys.modules.get("multiprocessing.process")
            name = names.current_process().name if names is not None else ""
            self.send("hello", version=VERSION, pid=pid, name=name)
        fields["event"] = event
        fields["process"] = self._process
        line = encode(fields) + "\n"
        try:
            write(self._fd, line.encode("utf-8", "backslashreplace"))
        except OSError:
            pass  # the program closed or filled it: the parent sees a run that ends without "end"

    def speak_for_parent(self):
        """In a process that was forked to speak for the one that forked it, and to hold nothing else of it open."""
        self._pid = getpid()
        os.closerange(3, self._fd)
        os.closerange(self._fd + 1, 1024)

    @property
    def in_child(self):
        return getpid() != self._pid or self._process != 0


def number(value):
    """A float as JSON can carry it: NaN and infinities become words."""
    value = float(value)
    return value if math.isfinite(value) else str(value)
