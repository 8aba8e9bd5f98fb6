"""The server that forks the runs, apart from what a run does."""

from __future__ import annotations

import subprocess
import sys

from autodetach.agent import serve

ORPHANS = """
import importlib.util, os, sys, time
spec = importlib.util.spec_from_file_location("serve", sys.argv[1])
serve = importlib.util.module_from_spec(spec)
spec.loader.exec_module(serve)
server = serve.Server(1, None)
ready, say = os.pipe()
for _ in range(40):
    if not os.fork():
        os.setsid()
        hoard = bytearray(b"x") * (50 << 20)
        os.write(say, b"1")
        time.sleep(60)
for _ in range(40):
    os.read(ready, 1)
server._end_orphans()
print(sum(map(serve.is_alive, serve.descendants(os.getpid()))))
"""


def test_what_a_run_leaves_behind_is_gone_when_its_end_is_said():
    """Large processes are a while in dying; one that still is counts as the next run's."""
    done = subprocess.run([sys.executable, "-c", ORPHANS, serve.__file__], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
