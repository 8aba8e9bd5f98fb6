"""Confinement by bubblewrap: user, process, network, IPC and host-name namespaces, a read-only machine."""

from __future__ import annotations

import glob
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from autodetach.isolation.interface import GUARANTEES, Policy, rest_of

DEVICES = (
    "/dev/nvidia*", "/dev/dri", "/dev/kfd", "/dev/dxg", "/dev/accel*", "/dev/infiniband", "/dev/davinci*",
)  # fmt: skip
# Below /run stand the sockets of the machine (docker, dbus); these few folders hold files that
# programs need.
_NEEDED_IN_RUN = ("/run/current-system", "/run/opengl-driver", "/run/media", "/run/nvidia")
_NEEDED_FOR_NAMES = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager")
_SWITCHES = (
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/fs",
    "/proc/acpi",
    "/proc/scsi",
    "/proc/irq",
    "/proc/bus",
)
_SYSTEM = ("/usr/bin", "/usr/local/bin", "/bin", "/run/current-system/sw/bin", "/run/wrappers/bin")


class Bubblewrap:
    name = "bubblewrap"
    enforces: tuple[str, ...] = tuple(word for word in GUARANTEES)
    not_enforced = rest_of(enforces)

    def probe(self) -> str | None:
        binary = find_binary()
        if binary is None:
            return "no bwrap on this machine (Debian, Ubuntu, Fedora: the package bubblewrap)"
        return _try(binary, ())

    def command(self, argv: Sequence[str], policy: Policy) -> list[str]:
        binary = find_binary() or "bwrap"
        return [binary, *_namespaces(binary, policy.network), *_mounts(policy), "--", *argv]


@lru_cache
def find_binary() -> str | None:
    """``bwrap`` from a place of the system; one that lies in the project's reach is not trusted."""
    here = os.path.realpath(os.getcwd())
    searched = [*_SYSTEM, *(part for part in os.get_exec_path() if os.path.isabs(part))]
    for folder in searched:
        path = os.path.realpath(os.path.join(folder, "bwrap"))
        if os.access(path, os.X_OK) and os.path.isfile(path) and not path.startswith(here.rstrip("/") + "/"):
            return path
    return None


def _namespaces(binary: str, network: bool) -> list[str]:
    words = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    words += ["--die-with-parent", "--cap-drop", "ALL"]
    if not network:
        words.append("--unshare-net")
    if _try(binary, ("--disable-userns",)) is None:
        words.append("--disable-userns")
    return words


@lru_cache
def _try(binary: str, extra: tuple[str, ...]) -> str | None:
    """Really start it, and see that the machine cannot be written to and the network is another one."""
    with tempfile.TemporaryDirectory(prefix="autodetach-probe-") as folder:
        script = f"echo x 2>/dev/null >{folder}/f; read one two < /proc/self/stat; echo alive"
        command = [
            binary,
            "--unshare-all",
            "--die-with-parent",
            "--cap-drop",
            "ALL",
            "--unshare-user",
            *extra,
        ]
        command += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "/bin/sh", "-c", script]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=20, check=False, cwd="/"
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{binary} cannot be run: {error}"
        if done.returncode or "alive" not in done.stdout:
            return (done.stderr.strip().splitlines() or ["it fails without a word"])[-1]
        return "a read-only file system could be written to" if os.listdir(folder) else None


def _mounts(policy: Policy) -> Iterator[str]:
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    # Root without capabilities still owns the kernel's switches; bwrap covers them only for others.
    for place in _SWITCHES:
        yield from ("--ro-bind-try", place, place)
    if policy.shared_memory:
        yield from ("--size", str(policy.shared_memory))
    yield from ("--tmpfs", "/dev/shm")
    for pattern in DEVICES if policy.accelerators else ():
        for device in sorted(glob.glob(pattern)):
            yield from ("--dev-bind", device, device)
    yield from ("--tmpfs", "/run")
    for place in (*_NEEDED_IN_RUN, *(_NEEDED_FOR_NAMES if policy.network else ())):
        yield from ("--ro-bind-try", place, place)
    # What lies deeper is mounted later, so that a project inside a hidden home is seen and the keys in it are
    # not.
    hidden = [path for path in policy.hidden if not str(path).startswith("/proc/")]
    covers = {Path("/tmp"), Path("/var/tmp"), Path("/run"), *hidden}
    steps = [(path, "hide") for path in hidden]
    steps += [(Path(place), "temp") for place in ("/tmp", "/var/tmp") if os.path.isdir(place)]
    steps += [(path, "show") for path in policy.readable if path not in covers and covers & set(path.parents)]
    for path, what in sorted(steps, key=lambda step: (len(step[0].parts), step[1])):
        if what == "temp":
            yield from ("--bind", str(policy.temp), str(path))
        elif what == "show":
            yield from ("--ro-bind", str(path), str(path))
        elif path.is_dir():
            yield from ("--tmpfs", str(path))
        else:
            yield from ("--ro-bind", "/dev/null", str(path))
    for path in policy.writable:
        yield from ("--bind", str(path), str(path))
