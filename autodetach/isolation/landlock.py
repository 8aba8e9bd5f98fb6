"""Confinement by Landlock: files, TCP, signals; with a network namespace of its own where users may have one.

The kernel's rules are described in ``Documentation/userspace-api/landlock.rst``; what lies in ``confine.py``
puts them on before the command starts, and they can never be taken off again.
"""

from __future__ import annotations

import glob
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from autodetach.isolation import confine
from autodetach.isolation.bubblewrap import DEVICES
from autodetach.isolation.interface import Policy, rest_of

_PLAIN_DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/ptmx",
    "/dev/tty",
)
_SHARED_MEMORY = "/dev/shm"
_TRY = """
import os, socket, sys
inside, outside = sys.argv[1:]
open(inside + "/f", "w").close()
try:
    open(outside + "/f", "w").close()
    print("open")
except PermissionError:
    print("closed")
try:
    print(os.readlink("/proc/self/ns/net"))
except OSError:
    pass
"""


class Landlock:
    name = "landlock"

    def probe(self) -> str | None:
        return _probe()[0]

    @property
    def enforces(self) -> tuple[str, ...]:
        words = ["writes outside the scratch", "reading secrets"]
        if _probe()[1]:
            words.append("network")
        if confine.abi() >= 6:
            # The guard, out of reach of the program's signals, ends what the program leaves.
            words += ["signals to other processes", "leftover processes"]
        return tuple(words)

    @property
    def not_enforced(self) -> tuple[str, ...]:
        rest = rest_of(self.enforces)
        return tuple("network other than TCP" if word == "network" and self._tcp() else word for word in rest)

    def _tcp(self) -> bool:
        return confine.abi() >= 4

    def command(self, argv: Sequence[str], policy: Policy) -> list[str]:
        wanted = DEVICES if policy.accelerators else ()
        devices = [*_PLAIN_DEVICES, *(device for pattern in wanted for device in glob.glob(pattern))]
        rights = {
            "writable": [str(path) for path in policy.writable] + [_SHARED_MEMORY],
            "devices": devices,
            "hidden": [str(path) for path in policy.hidden],
            "readable": [str(path) for path in policy.readable],
            "network": policy.network,
        }
        return [sys.executable, "-I", "-S", confine.__file__, json.dumps(rights), *argv]


@lru_cache
def _probe() -> tuple[str | None, bool]:
    """Why it does not work, and whether the confined process has a network of its own."""
    version = confine.abi()
    if version == 0:
        return "the kernel has no Landlock, or it is not switched on", False
    if version < confine.OLDEST_ABI:
        return (
            f"the kernel's Landlock is too old (ABI {version}; {confine.OLDEST_ABI} since Linux 6.2)",
            False,
        )
    with tempfile.TemporaryDirectory(prefix="autodetach-probe-") as folder:
        inside, outside = Path(folder, "inside"), Path(folder, "outside")
        inside.mkdir()
        outside.mkdir()
        policy = Policy(writable=(inside,), temp=inside)
        test = [sys.executable, "-I", "-S", "-c", _TRY, str(inside), str(outside)]
        try:
            done = subprocess.run(
                Landlock().command(test, policy),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=20,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error), False
    said = done.stdout.split()
    if said[:1] != ["closed"]:
        return (done.stderr.strip().splitlines() or ["a confined process could still write outside"])[-1], False
    try:
        ours = os.readlink("/proc/self/ns/net")
    except OSError:  # no /proc: nothing tells the two networks apart
        return None, False
    return None, said[1:] not in ([], [ours])
