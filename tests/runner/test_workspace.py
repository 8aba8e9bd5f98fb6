import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from autodetach.errors import SourceError
from autodetach.runner.project import Project
from autodetach.runner.removal import remove_tree
from autodetach.runner.workspace import Workspace


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "project"
    for name, text in {
        "pyproject.toml": "",
        "train.py": "original\n",
        "src/app/__init__.py": "",
        "data/small.csv": "1,2\n",
        ".git/HEAD": "ref: refs/heads/main\n",
        ".venv/pyvenv.cfg": "",
        ".venv/lib.py": "",
        "__pycache__/train.pyc": "",
        "node_modules/x.js": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def workspace(folder: Path, tmp_path: Path, cwd: Path | None = None, **options) -> Workspace:
    session = tmp_path / "session"
    for name in ("runs", "base"):
        (session / name).mkdir(parents=True)
    return Workspace(Project(folder, "train.py", cwd or folder, **options), session)


def test_a_copy_is_a_copy(folder, tmp_path) -> None:
    space = workspace(folder, tmp_path)
    (folder / "train.py").chmod(0o555)
    copy = space.fresh()
    assert copy.name == "project"
    found = {str(path.relative_to(copy)) for path in copy.rglob("*") if not path.is_dir()}
    assert found == {"pyproject.toml", "train.py", "src/app/__init__.py", "data/small.csv"}
    (copy / "train.py").write_text("changed")
    (copy / "data/small.csv").unlink()
    assert (folder / "train.py").read_text() == "original\n"
    assert os.access(copy / "train.py", os.X_OK)


def test_every_copy_is_of_the_same_moment(folder, tmp_path) -> None:
    space = workspace(folder, tmp_path)
    space.fresh()
    (folder / "train.py").write_text("edited meanwhile\n")
    (folder / "new.py").write_text("")
    copy = space.fresh()
    assert (copy / "train.py").read_text() == "original\n" and not (copy / "new.py").exists()


def test_patch(folder, tmp_path) -> None:
    space = workspace(folder, tmp_path)
    copy = space.fresh({"train.py": b"patched\r\n", "src/app/new.py": b"new"})
    assert (copy / "train.py").read_bytes() == b"patched\r\n"
    assert (copy / "src/app/new.py").read_bytes() == b"new"
    assert (space.fresh() / "train.py").read_text() == "original\n"


@pytest.mark.parametrize("path", ["../x.py", "/etc/x", "src/../../x.py", "", "a\0b"])
def test_patch_may_not_climb_out(folder, tmp_path, path) -> None:
    with pytest.raises(SourceError):
        workspace(folder, tmp_path).fresh({path: b""})


def git(*words: str, cwd: Path) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.skipif(not shutil.which("git"), reason="no git on this machine")
def test_programs_may_ask_git(folder, tmp_path) -> None:
    shutil.rmtree(folder / ".git")
    git("init", "-q", cwd=folder)
    git("add", "train.py", cwd=folder)
    git("commit", "-qm", "first", cwd=folder)
    git("tag", "v1", cwd=folder)
    git("config", "remote.origin.url", "https://me:password@host/x", cwd=folder)
    space = workspace(folder, tmp_path)
    copy = space.fresh()
    assert git("rev-parse", "HEAD", cwd=copy) == git("rev-parse", "HEAD", cwd=folder)
    assert git("describe", "--tags", "--dirty", cwd=copy) == "v1\n"
    assert "password" not in git("config", "--list", "--local", cwd=copy)
    git("commit", "-qam", "second", "--allow-empty", cwd=copy)
    assert git("log", "--oneline", cwd=folder).count("\n") == 1
    assert not (copy / ".git").is_symlink()


def test_large_files_are_linked_outputs_copied(folder, tmp_path) -> None:
    for name in ("data/big.bin", "old.log"):
        (folder / name).write_bytes(b"x" * (2 << 20))
    with (folder / "data/huge.pt").open("wb") as file:
        file.truncate(50 << 30)
    copy = workspace(folder, tmp_path).fresh()
    assert os.readlink(copy / "data/big.bin") == str(folder / "data/big.bin")
    assert (copy / "data/huge.pt").is_symlink() and not (copy / "old.log").is_symlink()


def test_links_stay_in_the_copy(folder, tmp_path) -> None:
    (folder / "same.py").symlink_to("train.py")
    (folder / "absolute.py").symlink_to(folder / "train.py")
    (folder / "lib").symlink_to("src/app")
    (folder / "out").symlink_to(tmp_path)
    (folder / "broken").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    (folder / "env").symlink_to(".venv")
    copy = workspace(folder, tmp_path).fresh()
    for name in ("same.py", "absolute.py"):
        (copy / name).write_text("changed")
    assert (folder / "train.py").read_text() == "original\n"
    assert os.path.realpath(copy / "lib") == str(copy / "src/app")
    assert os.path.realpath(copy / "out") == str(tmp_path)
    assert os.path.realpath(copy / "env") == str(folder / ".venv")


def test_strange_things_are_left_out(folder, tmp_path) -> None:
    os.mkfifo(folder / "pipe")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(folder / "socket"))
    (folder / "bad\udcff.py").write_text("")
    copy = workspace(folder, tmp_path).fresh()
    server.close()
    assert not (copy / "pipe").exists() and not (copy / "socket").exists()
    assert (copy / "bad\udcff.py").exists()


def test_folder_of_many_files_is_linked_whole_and_opened_for_a_patch(folder, tmp_path) -> None:
    many = folder / "images"
    many.mkdir()
    for number in range(4100):
        (many / f"{number}.jpg").touch()
    space = workspace(folder, tmp_path)
    assert (space.fresh() / "images").is_symlink()
    copy = space.fresh({"images/tool.py": b"x"})
    assert (copy / "images/tool.py").read_bytes() == b"x" and (copy / "images/7.jpg").is_symlink()
    assert not (many / "tool.py").exists()


def test_big_projects_start_fast(folder, tmp_path) -> None:
    for part in range(12):
        (folder / f"part{part}").mkdir()
        for number in range(1000):
            os.close(os.open(folder / f"part{part}/{number}.txt", os.O_CREAT | os.O_WRONLY))
    for number in range(50):
        with (folder / f"shard{number}.bin").open("wb") as file:
            file.truncate(1 << 30)
    space = workspace(folder, tmp_path)
    begun = time.monotonic()
    first = space.fresh()
    taken = time.monotonic() - begun
    assert (first / "shard1.bin").is_symlink()
    assert taken < 8, f"{taken:.1f} s for 12,000 files"  # generous: the machine may be busy


def test_cwd_outside_the_project(folder, tmp_path) -> None:
    (tmp_path / "beside.txt").write_text("beside")
    space = workspace(folder, tmp_path, cwd=tmp_path)
    copy = space.fresh()
    view = copy.parent / "cwd"
    assert (view / "beside.txt").read_text() == "beside"
    assert os.path.realpath(view / "project/train.py") == str(copy / "train.py")
    (view / "out.txt").write_text("x")
    assert not (tmp_path / "out.txt").exists()


def test_shallow_project_takes_source_only(folder, tmp_path) -> None:
    (folder / "packed").mkdir()
    (folder / "packed/mod.py").touch()
    copy = workspace(folder, tmp_path, shallow=True).fresh()
    assert (copy / "data").is_symlink() and not (copy / "packed").is_symlink()
    assert not (copy / ".venv").exists()


def test_remove_tree(tmp_path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").touch()
    top = tmp_path / "top"
    (top / "a/b").mkdir(parents=True)
    (top / "a/link").symlink_to(outside)
    (top / "a/b/file").touch()
    os.chmod(top / "a/b", 0)
    os.chmod(top / "a", 0o500)
    assert remove_tree(top)
    assert not top.exists() and (outside / "keep").exists()
    assert remove_tree(top)
