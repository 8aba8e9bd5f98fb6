"""What the server's first word means: who it is, or one clear line about why there will be no run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autodetach.errors import AutodetachError, InterpreterError, RunError
from autodetach.isolation.interface import Mechanism

_OPENED_BY_NETWORK = ("network", "unix sockets of the machine")


@dataclass(frozen=True)
class ServerInfo:
    """What the server said of itself, and what holds it."""

    python: str
    torch: str
    cuda: tuple[str, ...]
    """The names of the CUDA devices that the program can use."""
    built_with_cuda: bool
    isolation: str
    enforced: tuple[str, ...]
    not_enforced: tuple[str, ...]


def describe(ready: Mapping[str, Any], mechanism: Mechanism, network: bool) -> ServerInfo:
    """``network``: whether it was allowed, which opens what the mechanism would have closed."""
    opened = tuple(word for word in _OPENED_BY_NETWORK if network and word in mechanism.enforces)
    return ServerInfo(
        python=str(ready.get("python", ""))[:40],
        torch=str(ready.get("torch", ""))[:40],
        cuda=tuple(str(name)[:200] for name in names) if isinstance(names := ready.get("cuda"), list) else (),
        built_with_cuda=isinstance(names, list),
        isolation=mechanism.name,
        enforced=tuple(word for word in mechanism.enforces if word not in opened),
        not_enforced=(*mechanism.not_enforced, *opened),
    )


def refusal(interpreter: Path, answer: Mapping[str, Any]) -> AutodetachError:
    """For a server that said that it cannot."""
    detail = str(answer.get("detail") or answer.get("error"))[:500]
    if answer.get("error") != "no-torch":
        return InterpreterError(f"{interpreter} cannot run the program: {detail}; name another with --python")
    if "No module named 'torch'" in detail:
        return InterpreterError(f"{interpreter} has no torch; name the interpreter that runs the program with --python")
    return InterpreterError(f"{interpreter} cannot import torch: {detail}")


def silence(interpreter: Path, seconds: float) -> AutodetachError:
    """For a server that said nothing in time."""
    return RunError(f"{interpreter} was not ready after {seconds:g} s (importing torch took too long)")


def death(interpreter: Path, complaint: str) -> AutodetachError:
    """For a server that ended before its first word."""
    last = complaint.splitlines()[-1:] or ["it said nothing"]
    return RunError(f"{interpreter} ended before it was ready: {last[0][:500]}")
