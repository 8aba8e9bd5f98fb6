"""Where people keep what a program under repair has no business reading."""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator, Mapping
from pathlib import Path

IN_HOME = (
    ".ssh", ".aws", ".azure", ".config/gcloud", ".kube", ".docker", ".gnupg", ".netrc", "_netrc",
    ".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub", ".config/glab-cli",
    ".pypirc", ".npmrc", ".yarnrc.yml", ".cargo/credentials", ".cargo/credentials.toml",
    ".gem/credentials", ".kaggle", ".config/kaggle", ".huggingface/token", ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens", ".wandb/settings", ".config/wandb/settings", ".comet.config",
    ".neptune", ".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".config/op",
    ".config/rclone", ".s3cfg", ".boto", ".oci", ".terraform.d", ".vault-token", ".pgpass", ".my.cnf",
    ".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware",
    ".config/microsoft-edge", ".config/vivaldi", ".config/opera", ".config/Signal", ".config/Slack",
    ".electrum", ".bitcoin", ".ethereum", ".bash_history", ".zsh_history", ".python_history",
    ".psql_history", ".local/share/fish/fish_history", ".Xauthority", ".ICEauthority",
    ".config/pulse/cookie", "Library/Keychains", "Library/Cookies",
    "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox", "Library/Safari",
    "Library/Messages", "Library/Mail",
)  # fmt: skip
IN_SYSTEM = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh", "/etc/ssl/private", "/etc/kubernetes",
             "/var/lib/docker", "/var/run/secrets", "/var/backups", "/proc/kcore")  # fmt: skip
NAMED_BY = (
    "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG", "NETRC",
    "HF_TOKEN_PATH", "KAGGLE_CONFIG_DIR", "GNUPGHOME", "DOCKER_CONFIG", "PGPASSFILE",
)  # fmt: skip


def hidden_places(env: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """The places of this machine that exist, links resolved, each once."""
    homes = own_homes()
    wanted = [home / place for home in homes for place in IN_HOME]
    wanted += [Path(place) for place in IN_SYSTEM]
    wanted += [Path(env[name]) for name in NAMED_BY if os.path.isabs(env.get(name, ""))]
    wanted += _other_homes(homes)
    seen = {Path("/"), *homes}
    for place in wanted:
        real = Path(os.path.realpath(place))
        if os.path.lexists(real) and real not in seen:
            seen.add(real)
            yield real


def own_homes() -> list[Path]:
    """What HOME and the user database say: a HOME set for one program leaves no key open in the other."""
    named = [os.path.expanduser("~")]
    with contextlib.suppress(KeyError):
        named.append(pwd.getpwuid(os.getuid()).pw_dir)
    real = [Path(os.path.realpath(home)) for home in named if os.path.isabs(home)]
    return [home for home in dict.fromkeys(real) if home != Path("/")]


def _other_homes(own: list[Path]) -> Iterator[Path]:
    folders = [Path("/root")]
    for parent in ("/home", "/Users"):
        with contextlib.suppress(OSError), os.scandir(parent) as entries:
            folders += sorted(Path(entry.path) for entry in entries if entry.name != "Shared")
    for folder in folders:
        # A home within another's place, as in tests and containers, must stay in reach.
        if not any(home == folder or folder in home.parents for home in own):
            yield folder
