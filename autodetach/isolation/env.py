"""The environment of a run: the user's, without secrets, with what keeps programs headless and repeatable."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

_SECRET = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIAL|(^|_)AUTH($|_)|(^|_)PAT$"
    r"|^AWS_|^AZURE_|^GOOGLE_APPLICATION|_KEY$|^SSH_|^GPG_|^DBUS_|^DOCKER_|KUBECONFIG|WEBHOOK|_DSN$|^DATABASE_URL$"
    r"|CONNECTION_STRING|(^|_)COOKIE",
    re.IGNORECASE,
)
_HARMLESS = frozenset({"TOKENIZERS_PARALLELISM", "SSH_TTY"})
_FIXED = {"PYTHONDONTWRITEBYTECODE": "1"}
_WHERE_UNSET = {
    "PYTHONHASHSEED": "0",
    "MPLBACKEND": "Agg",
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "SDL_VIDEODRIVER": "dummy",
    "SDL_AUDIODRIVER": "dummy",
    "QT_QPA_PLATFORM": "offscreen",
}
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
_CACHES = {
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "CUDA_CACHE_PATH": "cuda",
    "NUMBA_CACHE_DIR": "numba",
    "MPLCONFIGDIR": "matplotlib",
}
# Would change how our own server starts, or ask for a terminal.
_DROPPED = frozenset(
    {"PYTHONINSPECT", "PYTHONSTARTUP", "PYTHONBREAKPOINT", "BASH_ENV", "ENV", "DISPLAY", "WAYLAND_DISPLAY"}
)


def is_secret(name: str, value: str = "") -> bool:
    """Whether a variable looks like a credential, by its name or by a password in its URL."""
    if name in _HARMLESS:
        return False
    return bool(_SECRET.search(name)) or bool(re.match(r"[a-z][a-z0-9+.-]*://[^/@\s]*:[^/@\s]+@", value))


def run_environment(
    user: Mapping[str, str],
    *,
    cwd: Path,
    temp: Path,
    caches: Path,
    network: bool,
    let_through: Iterable[str] = (),
) -> dict[str, str]:
    """Build the environment. ``let_through`` names variables that pass whatever they are (``--env``)."""
    wanted = frozenset(let_through)
    env = {
        name: value
        for name, value in user.items()
        if name in wanted or (name not in _DROPPED and not is_secret(name, value))
    }
    env.update(_FIXED)
    for name, value in {**_WHERE_UNSET, **({} if network else _OFFLINE)}.items():
        env.setdefault(name, value)
    for name, folder in _CACHES.items():
        if name not in wanted:
            env[name] = str(caches / folder)
    if paths := env.get("PYTHONPATH"):
        # Relative entries mean the user's folder, and the server starts in another one.
        env["PYTHONPATH"] = os.pathsep.join(str(cwd / part) for part in paths.split(os.pathsep) if part)
    for name in ("TMPDIR", "TEMP", "TMP"):
        env[name] = str(temp)
    return env
