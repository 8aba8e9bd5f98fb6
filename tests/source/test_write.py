import contextlib
import json
import os
import signal
import stat
import sys

import pytest

from autodetach.errors import RefusedError
from autodetach.source import write
from autodetach.source.write import JOURNAL, write_files

OLD = {"a.py": b"a\n", "sub/b.py": b"b\r\n", "c.py": b"c"}
NEW = {"a.py": b"A\n", "sub/b.py": b"B\r\n", "c.py": b"C"}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "sub").mkdir()
    for name, data in OLD.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def contents(root):
    return {name: (root / name).read_bytes() for name in OLD}


def leftovers(root):
    return sorted(path.name for path in root.rglob("*") if path.name.startswith(".autodetach"))


def test_all_are_written(root):
    assert write_files(root, NEW, OLD) == ()
    assert contents(root) == NEW
    assert leftovers(root) == []


def test_a_changed_file_stops_all(root):
    (root / "sub/b.py").write_bytes(b"mine\n")
    with pytest.raises(RefusedError, match=r"sub/b\.py has changed since it was analysed"):
        write_files(root, NEW, OLD)
    assert contents(root) == {**OLD, "sub/b.py": b"mine\n"}
    assert leftovers(root) == []


@pytest.mark.parametrize(
    ("name", "message"), [("gone.py", "cannot be read"), ("sub", "no regular file"), ("a.py", "has changed")]
)
def test_what_cannot_be_checked_is_refused(root, name, message):
    with pytest.raises(RefusedError, match=message):
        write_files(root, {name: b"x"}, {} if name == "a.py" else {name: b""})


def test_mode_and_attributes_stay(root):
    os.chmod(root / "a.py", 0o750)
    try:
        os.setxattr(root / "a.py", "user.note", b"kept")
        attributes = True
    except (AttributeError, OSError):
        attributes = False
    write_files(root, {"a.py": b"A\n"}, OLD)
    assert stat.S_IMODE((root / "a.py").stat().st_mode) == 0o750
    if attributes:
        assert os.getxattr(root / "a.py", "user.note") == b"kept"


def test_a_link_stays_a_link(root):
    (root / "link.py").symlink_to("sub/b.py")
    write_files(root, {"link.py": b"B\n"}, {"link.py": OLD["sub/b.py"]})
    assert (root / "link.py").is_symlink()
    assert (root / "sub/b.py").read_bytes() == b"B\n"


def test_two_names_of_one_file_are_refused(root):
    (root / "link.py").symlink_to("a.py")
    with pytest.raises(RefusedError, match="two names"):
        write_files(root, {"link.py": b"1", "a.py": b"2"}, {"link.py": b"a\n", "a.py": b"a\n"})
    assert contents(root) == OLD


def test_hard_links_are_warned_of(root):
    os.link(root / "a.py", root / "other.py")
    assert write_files(root, NEW, OLD) == ("a.py has other hard links: they keep the old content",)
    assert (root / "other.py").read_bytes() == b"a\n"


def test_a_read_only_file_is_refused(root, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path.name != "c.py")
    with pytest.raises(RefusedError, match=r"c\.py is read-only"):
        write_files(root, NEW, OLD)
    assert contents(root) == OLD


def test_a_read_only_folder_is_refused(root, monkeypatch):
    def refuse(path, flags, *mode):
        if flags & os.O_CREAT and os.path.basename(os.path.dirname(path)) == "sub":
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, *mode)

    opened = os.open
    monkeypatch.setattr(write.os, "open", refuse)
    with pytest.raises(RefusedError, match=r"sub/b\.py: its folder cannot be written"):
        write_files(root, NEW, OLD)
    assert contents(root) == OLD
    assert leftovers(root) == []


def failing_rename(monkeypatch, root, at, error):
    rename, calls = os.replace, []

    def replace(source, target):
        if not str(target).endswith(JOURNAL):
            calls.append(target)
            if len(calls) == at:
                raise error
        rename(source, target)

    monkeypatch.setattr(os, "replace", replace)


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_between_renames_puts_all_back(root, monkeypatch, at, error):
    failing_rename(monkeypatch, root, at, error)
    with pytest.raises(RefusedError if isinstance(error, OSError) else KeyboardInterrupt):
        write_files(root, NEW, OLD)
    assert contents(root) == OLD
    assert leftovers(root) == []


def crashed(root, at):
    """Run in a child that dies at the given rename."""
    child = os.fork()
    if child == 0:
        rename, calls = os.replace, []

        def replace(source, target):
            if not str(target).endswith(JOURNAL):
                calls.append(target)
                if len(calls) == at:
                    os._exit(9)
            rename(source, target)

        os.replace = replace
        write_files(root, NEW, OLD)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="dies in a forked child")
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_crash_between_renames_is_made_good(root, at):
    crashed(root, at)
    assert (root / JOURNAL).exists()
    with pytest.raises(RefusedError, match="has changed"):
        write_files(root, NEW, OLD)  # what was analysed is no more: the interrupted write was finished
    assert contents(root) == NEW
    assert leftovers(root) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="dies in a forked child")
def test_a_file_changed_after_a_crash_is_left_alone(root):
    crashed(root, 2)
    (root / "sub/b.py").write_bytes(b"mine\n")
    with pytest.raises(RefusedError, match=r"an interrupted --apply left sub/b\.py unwritten"):
        write_files(root, NEW, OLD)
    assert (root / "sub/b.py").read_bytes() == b"mine\n"


def test_a_strange_journal_is_refused(root):
    (root / JOURNAL).write_text("{")
    with pytest.raises(RefusedError, match="cannot be read"):
        write_files(root, NEW, OLD)
    stranger = root / "stranger"
    stranger.write_bytes(b"x")
    (root / JOURNAL).write_text(json.dumps([{"name": "a.py", "new": str(stranger), "digest": write._digest(b"a\n")}]))
    with pytest.raises(RefusedError, match=r"left a\.py unwritten"):
        write_files(root, NEW, OLD)
    assert contents(root) == OLD


# -- dying anywhere ---------------------------------------------------------------------------------------------------


def killed_at_line(root, number, fail_at=0):
    """Write in a child that kills itself before the given line of ``write.py``; False where it came to its end.

    ``fail_at``: the rename that fails, so that what was done is put back.
    """
    child = os.fork()
    if child == 0:
        lines, rename, calls = iter(range(number)), os.replace, []

        def replace(source, target):
            if os.path.basename(target) in ("a.py", "b.py", "c.py"):
                calls.append(target)
                if len(calls) == fail_at:
                    raise OSError(5, "Input/output error")
            rename(source, target)

        def trace(frame, event, _):
            if frame.f_code.co_filename != write.__file__:
                return None
            if event == "line" and next(lines, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace

        os.replace = replace
        sys.settrace(trace)
        with contextlib.suppress(RefusedError):
            write_files(root, NEW, OLD)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="dies in a forked child")
@pytest.mark.parametrize("fail_at", [0, 2, 3])
def test_killed_before_any_line_nothing_is_lost_and_nothing_left(root, fail_at, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no power fails here
    number = 0
    while killed_at_line(root, number, fail_at):
        now = contents(root)
        assert all(now[name] in (OLD[name], NEW[name]) for name in now)  # never half a file
        assert write.is_interrupted(root) or now in (OLD, NEW)
        write.recover(root)
        assert contents(root) in (OLD, NEW)
        assert leftovers(root) == []
        for name, data in OLD.items():
            (root / name).write_bytes(data)
        number += 1
    assert number > 100
    assert contents(root) == (OLD if fail_at else NEW) and leftovers(root) == []
