"""The parent's part in devices: what was asked for and is there, and what the runs showed of it."""

from __future__ import annotations

import glob
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from autodetach.errors import RefusedError
from autodetach.model import Device

if TYPE_CHECKING:
    from autodetach.diagnosis.recording import Recording
    from autodetach.laboratory import Observation
    from autodetach.runner.readiness import ServerInfo
    from autodetach.settings import Settings

NODES = "/dev/nvidia[0-9]*"
_WORDS = ("cuda", "nvidia", "accelerator")
"""One of them stands in the last frame or the message of a failure for want of CUDA."""
_ASK = "import torch; print(torch.cuda.device_count())"


def has_cuda(device: str, info: ServerInfo) -> bool:
    """Whether the program gets to see a CUDA device."""
    return device != "cpu" and bool(info.cuda)


def insist_on_device(settings: Settings, info: ServerInfo, interpreter: Path) -> None:
    """Raises RefusedError where a CUDA device was asked for and is not to be had, or was hidden by our isolation."""
    if settings.device == "cpu":
        return
    if not info.cuda and _is_hidden(info, interpreter):
        raise RefusedError(
            f"the isolation ({info.isolation}) hides this machine's GPU from the program; --isolation none leaves it "
            "open, --device cpu does without"
        )
    if settings.device == "auto":
        return
    wanted = int(settings.device.partition(":")[2] or 0)
    if wanted < len(info.cuda):
        return
    if info.cuda:
        there = f"{len(info.cuda)} CUDA device{'s' * (len(info.cuda) > 1)}, numbered from 0"
    else:
        there = "no CUDA device" + ("" if info.built_with_cuda else f", its torch {info.torch} is built without CUDA")
    raise RefusedError(
        f"--device {settings.device} is not to be had: {interpreter} sees {there}; --device auto runs the program on "
        "the CPU where there is none"
    )


def _is_hidden(info: ServerInfo, interpreter: Path) -> bool:
    """Whether torch sees a GPU outside, and none inside."""
    if not info.built_with_cuda or info.isolation in ("", "none") or not glob.glob(NODES):
        return False
    try:
        command = [str(interpreter), "-I", "-c", _ASK]
        done = subprocess.run(command, capture_output=True, timeout=120, check=False, cwd="/", text=True)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.stdout.strip() not in ("", "0")


def wants_redirection(seen: Observation, info: ServerInfo, settings: Settings) -> bool:
    """Whether the program may have come no further for want of CUDA: a run with its CUDA done on the CPU will tell."""
    recording = seen.recording
    if has_cuda(settings.device, info) or recording.failure is not None or seen.result.ended in ("timeout", "limit"):
        return False
    if recording.asked and not recording.backwards:
        return True
    last = recording.traceback.rpartition("\n  File ")[2].lower()
    return recording.how == "error" and any(word in last for word in _WORDS)


def device_of(observed: Recording, proof: Recording | None) -> Device:
    """The device of the failing run and, where a patch was chosen, of the run that proves it."""
    runs = [observed] if proof is None else [observed, proof]
    if any(run.redirected for run in runs):
        return Device("cpu", asked_for="cuda")
    kinds = observed.failure_devices if observed.failure is not None else observed.devices
    if proof is not None:
        kinds &= proof.devices
    if "cuda" not in kinds:
        return Device()
    return Device("cuda", ", ".join(sorted({name for run in runs for name in run.device_names})))


def about(device: Device) -> tuple[str, ...]:
    """What a report without a patch has to say of it."""
    return ("the program asks for cuda, which is not here: it was run on the cpu",) if device.asked_for else ()


def no_further(recording: Recording) -> tuple[str, ...]:
    """What there is to say of a redirected run that trained nothing."""
    last = recording.traceback.strip().rpartition("\n")[2]
    if not recording.redirected or recording.how != "error":
        return ()
    return (
        f"there is no cuda here, and with all that is meant for it done on the cpu the program fails as well: {last}",
    )
