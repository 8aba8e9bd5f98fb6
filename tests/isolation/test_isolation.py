import os
import subprocess
import sys
from pathlib import Path

import pytest

from autodetach.errors import RefusedError, UsageError
from autodetach.isolation import bubblewrap, choose, confine, env, landlock, secrets
from autodetach.isolation.interface import GUARANTEES, Policy


class Broken:
    name = "bubblewrap"
    enforces = ()
    not_enforced = ()

    def probe(self):
        return "it is broken"

    def command(self, argv, policy):
        raise AssertionError


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "GITHUB_PAT", "SSH_AUTH_SOCK",
     "NPM_AUTH",     "WANDB_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "SLACK_WEBHOOK",
     "DBUS_SESSION_BUS_ADDRESS", "SENTRY_DSN"],
)  # fmt: skip
def test_secret_names(name) -> None:
    assert env.is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "TOKENIZERS_PARALLELISM",
        "CUDA_VISIBLE_DEVICES",
        "OMP_NUM_THREADS",
        "LANG",
        "PATTERN",
        "AUTHOR",
    ],
)
def test_plain_names(name) -> None:
    assert not env.is_secret(name)


def test_environment() -> None:
    user = {
        "PYTHONHASHSEED": "7",
        "HF_TOKEN": "x",
        "KEEP_TOKEN": "y",
        "TMPDIR": "/elsewhere",
        "DISPLAY": ":0",
    }
    built = env.run_environment(
        user, cwd=Path("/p"), temp=Path("/t"), caches=Path("/c"), network=False, let_through=["KEEP_TOKEN"]
    )
    assert "HF_TOKEN" not in built and "DISPLAY" not in built and built["KEEP_TOKEN"] == "y"
    assert (built["PYTHONHASHSEED"], built["PYTHONDONTWRITEBYTECODE"], built["MPLBACKEND"]) == (
        "7",
        "1",
        "Agg",
    )
    assert (built["TMPDIR"], built["HF_HUB_OFFLINE"]) == ("/t", "1")


def test_auto_falls_back_and_says_so(monkeypatch) -> None:
    monkeypatch.setattr(choose, "known", lambda: (Broken(),))
    assert choose.choose("auto").name == "none"
    assert set(choose.choose("none").not_enforced) == set(GUARANTEES)
    for wanted in ("require", "bubblewrap"):
        with pytest.raises(RefusedError, match="it is broken"):
            choose.choose(wanted)
    with pytest.raises(RefusedError, match="landlock"):
        choose.choose("landlock")
    with pytest.raises(UsageError):
        choose.choose("docker")


def test_hidden_places(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "keys").mkdir()
    (tmp_path / ".ssh").symlink_to(tmp_path / "keys")
    (tmp_path / ".netrc").touch()
    (tmp_path / "kube").touch()
    hidden = set(secrets.hidden_places({"KUBECONFIG": str(tmp_path / "kube")}))
    assert {tmp_path / "keys", tmp_path / ".netrc", tmp_path / "kube"} <= hidden
    assert tmp_path not in hidden and Path("/") not in hidden
    assert not any(place in tmp_path.parents for place in hidden)


def test_readable_places_leave_out_only_what_is_hidden(tmp_path) -> None:
    for name in ("home/me/.ssh/id", "home/me/work/x", "home/you/z"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    hidden = [f"{tmp_path}/home/me/.ssh", f"{tmp_path}/home/you"]
    places = set(confine.readable_places(hidden))
    assert f"{tmp_path}/home/me/work" in places and not any(place.startswith(tuple(hidden)) for place in places)
    assert not any(Path(hide).is_relative_to(place) for hide in hidden for place in places)


def test_mounts_go_from_the_outside_in(tmp_path) -> None:
    policy = Policy(
        writable=(Path("/tmp/s/runs"),),
        temp=Path("/tmp/s/temp"),
        readable=(tmp_path,),
        hidden=(tmp_path / ".ssh",),
    )
    words = list(bubblewrap._mounts(policy))
    assert words.index("/tmp/s/temp") < words.index(str(tmp_path)) < words.index(str(tmp_path / ".ssh"))
    assert words[-3:] == ["--bind", "/tmp/s/runs", "/tmp/s/runs"]


def test_binary_within_the_project_is_not_trusted(tmp_path, monkeypatch) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    bubblewrap.find_binary.cache_clear()
    found = bubblewrap.find_binary()
    bubblewrap.find_binary.cache_clear()
    assert found is None or not found.startswith(str(tmp_path))


TCP_ONLY = """
import socket, sys
from autodetach.isolation import confine
server = socket.create_server(("127.0.0.1", 0))
confine.leave_network = lambda: False
confine.confine({"hidden": [], "readable": [], "writable": [], "devices": []}, False)
connect = lambda: socket.create_connection(server.getsockname())
for attempt in (connect, lambda: socket.create_server(("", 0))):
    try:
        attempt()
        sys.exit("reached the network")
    except PermissionError:
        pass
"""


@pytest.mark.skipif(confine.abi() < 4, reason="the kernel's Landlock knows no TCP")
def test_landlock_alone_denies_tcp() -> None:
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", TCP_ONLY]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mechanism", [bubblewrap.Bubblewrap(), landlock.Landlock()], ids=lambda one: one.name)
def test_nodes_of_accelerators_are_passed_on_unless_none_is_wanted(monkeypatch, tmp_path, mechanism) -> None:
    node = tmp_path / "nvidia0"
    node.write_text("")
    for module in (bubblewrap, landlock):
        monkeypatch.setattr(module, "DEVICES", (str(tmp_path / "nvidia*"),))
    for wanted in (True, False):
        policy = Policy(writable=(tmp_path / "scratch",), temp=tmp_path / "temp", accelerators=wanted)
        assert (str(node) in " ".join(mechanism.command(["true"], policy))) == wanted
