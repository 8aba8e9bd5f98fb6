"""Confines itself by Landlock, then becomes the command: ``confine.py POLICY COMMAND...``, POLICY as JSON.

Run as a script by our own interpreter, standard library only. Keys of the policy: ``writable``, ``devices``,
``hidden``, ``readable`` (lists of paths), ``network`` (bool). What could not be had is told on standard error
and never ends in running unconfined: without Landlock itself the script exits with 126.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import socket
import struct
import sys
from collections.abc import Iterable, Iterator

OLDEST_ABI = 3
"""Before it, files could be cut short anywhere."""
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_CHAR, _MAKE_DIR, _MAKE_REG = 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 8
_MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM, _REFER = 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_TCP = 0b11
_SCOPES = 0b11
_ON_FILES = _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_NEWNET, _NEWUSER, _NEWIPC = 0x40000000, 0x10000000, 0x08000000
_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 38, 24
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """The version of Landlock in this kernel, 0 without it."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


def handled(version: int) -> int:
    """The rights on files that are denied unless granted; executing and listing stay free."""
    rights = _WRITE_FILE | _READ_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_CHAR | _MAKE_DIR | _MAKE_REG | _MAKE_SOCK
    rights |= _MAKE_FIFO | _MAKE_BLOCK | _MAKE_SYM | _REFER | _TRUNCATE
    return rights | (_IOCTL_DEV if version >= 5 else 0)


def leave_network() -> bool:
    """A network of one's own, with a loopback that works; False where user namespaces are forbidden."""
    uid, gid = os.geteuid(), os.getegid()
    if _libc.unshare(_NEWUSER | _NEWNET | _NEWIPC):
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with contextlib.suppress(OSError), open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = bytearray(struct.pack("16sH22x", b"lo", 0))
        fcntl.ioctl(control, _SIOCGIFFLAGS, request)
        flags = struct.unpack_from("H", request, 16)[0]
        struct.pack_into("H", request, 16, flags | _IFF_UP)
        fcntl.ioctl(control, _SIOCSIFFLAGS, request)
    # Root in the namespace would get all capabilities over it back with the next exec.
    for capability in range(64):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    return True


def readable_places(hidden: Iterable[str]) -> Iterator[str]:
    """Everything but the hidden: rights reach downwards only, so each sibling along the way is named."""
    wanted = {path.rstrip("/") for path in hidden}
    on_the_way = {""}
    for path in wanted:
        parts = path.split("/")
        on_the_way.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
    queue = [""]
    while queue:
        folder = queue.pop()
        try:
            names = os.listdir(folder or "/")
        except OSError:
            continue
        for name in names:
            path = f"{folder}/{name}"
            if path in wanted:
                continue
            if path in on_the_way and not os.path.islink(path):
                queue.append(path)
            else:
                yield path


class Ruleset:
    def __init__(self, version: int, *, tcp: bool) -> None:
        self.rights = handled(version)
        words = [self.rights]
        if version >= 4:
            words.append(_TCP if tcp else 0)
        if version >= 6:
            words.append(_SCOPES)
        attributes = struct.pack(f"{len(words)}Q", *words)
        self._fd = _libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "no Landlock ruleset to be had")

    def allow(self, path: str, rights: int) -> None:
        """Grant rights on a path and below; a path that is not there is passed over."""
        try:
            # The whole path is opened, a last link not followed: a right on a link's aim would be granted by
            # its own path.
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return
        try:
            mode = os.fstat(fd).st_mode & 0o170000
            if mode == 0o120000:
                return
            rights &= self.rights if mode == 0o040000 else self.rights & _ON_FILES
            rule = struct.pack("=Qi", rights, fd)
            _libc.syscall(_ADD_RULE, self._fd, 1, rule, 0)
        finally:
            os.close(fd)

    def enforce(self) -> None:
        if _libc.syscall(_RESTRICT_SELF, self._fd, 0):
            raise OSError(ctypes.get_errno(), "Landlock refused to confine")
        os.close(self._fd)


def confine(policy: dict[str, list[str]], network: bool) -> None:
    """Raises OSError where Landlock cannot be had."""
    version = abi()
    if version < OLDEST_ABI:
        raise OSError(f"Landlock ABI {version}, at least {OLDEST_ABI} is needed")
    alone = not network and leave_network()
    ruleset = Ruleset(version, tcp=not network and not alone)
    if policy["hidden"]:
        for path in readable_places(policy["hidden"]):
            ruleset.allow(path, _READ_FILE)
    else:
        ruleset.allow("/", _READ_FILE)
    for path in policy["readable"]:
        if not any(path == place or place.startswith(path.rstrip("/") + "/") for place in policy["hidden"]):
            ruleset.allow(path, _READ_FILE)
    for path in policy["writable"]:
        ruleset.allow(path, ruleset.rights & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV))
    for path in policy["devices"]:
        ruleset.allow(path, _READ_FILE | _WRITE_FILE | _IOCTL_DEV)
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot give up privileges")
    ruleset.enforce()


def main(argv: list[str]) -> None:
    try:
        policy = json.loads(argv[1])
        confine(policy, bool(policy["network"]))
        os.execv(argv[2], argv[2:])
    except OSError as error:
        sys.stderr.write(f"cannot confine the program: {error}\n")
        os._exit(126)


if __name__ == "__main__":
    main(sys.argv)
