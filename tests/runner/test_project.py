from pathlib import Path

import pytest

from autodetach.errors import UsageError
from autodetach.runner.project import Project


def make(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("pass\n") if not name.endswith("/") else path.mkdir()
    return folder


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def discover(script: Path, cwd: Path) -> Project:
    return Project.discover(script, None, cwd)


def test_marked_root(place) -> None:
    folder = make(place / "p", "pyproject.toml", "src/app/train.py")
    found = discover(folder / "src/app/train.py", folder)
    assert (found.root, found.entry) == (folder, "src/app/train.py")
    assert found.cwd_in(Path("/copy")) == Path("/copy")


def test_marked_root_that_holds_the_cwd_wins(place) -> None:
    folder = make(place / "mono", ".git/HEAD", "sub/setup.py", "sub/train.py", "data/x")
    assert discover(folder / "sub/train.py", folder / "data").root == folder
    assert discover(folder / "sub/train.py", folder / "sub").root == folder / "sub"
    assert discover(Path("train.py"), folder / "sub").cwd_in(Path("/c")) == Path("/c")


def test_cwd_outside(place) -> None:
    folder = make(place / "p", "pyproject.toml", "train.py")
    found = discover(folder / "train.py", place)
    assert found.root == folder and not found.cwd_inside
    assert found.cwd_in(Path("/runs/1/p")) == Path("/runs/1/cwd")


def test_unmarked(place) -> None:
    folder = make(place / "lab", "a/b/train.py", "a/b/c/d/e/deep.py")
    assert discover(folder / "a/b/train.py", folder).root == folder
    assert discover(folder / "a/b/train.py", folder / "a/b").root == folder / "a/b"
    assert discover(folder / "a/b/c/d/e/deep.py", folder).root == folder / "a/b/c/d/e"
    assert discover(folder / "a/b/train.py", place).root == folder / "a/b"


def test_never_the_home_or_temp_folder_whole(place) -> None:
    make(place, "train.py", ".git/HEAD", "lab/x.py")
    found = discover(place / "train.py", place)
    assert found.root == place and found.shallow
    assert discover(place / "lab/x.py", place).root == place / "lab"


def test_link_to_a_script(place) -> None:
    folder = make(place / "p", "pyproject.toml", "train.py")
    (place / "link.py").symlink_to(folder / "train.py")
    assert discover(place / "link.py", place).root == folder


def test_module(place) -> None:
    folder = make(place / "p", "pyproject.toml", "app/__main__.py")
    found = Project.discover(None, "app", folder)
    assert (found.root, found.entry, found.module) == (folder, "app", True)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("absent.py", None, "no such file: absent.py"),
        ("folder", "/", "is a folder"),
        ("model.pt", b"PK\x03\x04\0\0", "not Python source"),
    ],
)
def test_bad_scripts(place, name, content, words) -> None:
    if content == "/":
        (place / name).mkdir()
    elif content is not None:
        (place / name).write_bytes(content)
    with pytest.raises(UsageError, match=words):
        discover(Path(name), place)


def test_neither_or_both(place) -> None:
    with pytest.raises(UsageError):
        Project.discover(None, None, place)
    with pytest.raises(UsageError):
        Project.discover(Path("x.py"), "x", place)


def test_project_files(place) -> None:
    folder = make(
        place / "ünï code", "pyproject.toml", "train.py", "lib/a.py", ".venv/pyvenv.cfg", ".venv/lib/x.py",
        "site-packages/y.py", "node_modules/z.py",
    )  # fmt: skip
    found = discover(folder / "train.py", folder)
    assert found.is_project_file(folder / "lib/a.py")
    assert found.is_project_file(folder / "lib/../train.py")
    for other in (".venv/lib/x.py", "site-packages/y.py", "node_modules/z.py", "../else.py", "."):
        assert not found.is_project_file(folder / other), other
