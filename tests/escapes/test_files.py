"""Programs that write where they must not: nothing outside the scratch changes."""

import os
from pathlib import Path

import pytest


def snapshot(folder: Path) -> dict[str, bytes | str]:
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else "/"
    return found


def hostile_writes(room) -> str:
    precious, project = room.elsewhere / "precious.txt", room.project_folder
    return f"""
precious, project, home = {str(precious)!r}, {str(project)!r}, {str(room.home)!r}
def over(path):
    with open(path, "w") as file: file.write("gone")
attempt("absolute", lambda: over(precious))
attempt("append", lambda: open(precious, "a").write("x"))
attempt("new file", lambda: over(home + "/elsewhere/new.txt"))
attempt("dots", lambda: over(os.path.relpath(precious)))
def through_link():
    os.symlink(precious, "link"); over("link")
attempt("symlink", through_link)
def hard_link():
    os.link(precious, "hard"); over("hard")
attempt("hard link", hard_link)
attempt("proc root", lambda: over("/proc/self/root" + precious))
attempt("proc cwd", lambda: over("/proc/self/cwd/" + os.path.relpath(precious)))
attempt("unlink", lambda: os.unlink(precious))
attempt("rename away", lambda: os.rename(precious, "stolen"))
attempt("rename over", lambda: (over("mine"), os.rename("mine", precious)))
attempt("truncate", lambda: os.truncate(precious, 0))
attempt("mkdir", lambda: os.mkdir(home + "/elsewhere/folder"))
attempt("rmtree", lambda: __import__("shutil").rmtree(project))
attempt("git", lambda: over(project + "/.git/config"))
attempt("shell", lambda: subprocess.run(["sh", "-c", "echo gone > " + precious], check=True))
def descriptor():
    folder = os.open(home + "/elsewhere", os.O_RDONLY)
    os.close(os.open("precious.txt", os.O_WRONLY | os.O_TRUNC, dir_fd=folder))
attempt("folder descriptor", descriptor)
def mount():
    import ctypes
    assert ctypes.CDLL(None).mount(b"none", (home + "/elsewhere").encode(), b"tmpfs", 0, None) == 0
attempt("mount", mount)
def remount():
    import ctypes
    assert ctypes.CDLL(None).mount(None, b"/", None, 32 | 4096, None) == 0
attempt("remount", remount)
attempt("sysctl", lambda: over("/proc/sys/kernel/domainname"))
def kernel_switches():
    found = []
    for folder, _, names in os.walk("/proc/sys"):
        for name in names:
            try:
                os.close(os.open(folder + "/" + name, os.O_WRONLY)); found.append(folder + "/" + name)
            except OSError: pass
    for name in os.listdir("/proc"):
        if not name.isdigit() and os.path.isfile("/proc/" + name) and not os.path.islink("/proc/" + name):
            try:
                os.close(os.open("/proc/" + name, os.O_WRONLY)); found.append(name)
            except OSError: pass
    return found[0]
attempt("kernel switches", kernel_switches)
attempt("node", lambda: os.mknod("disk", 0o60600, os.makedev(254, 0)))
"""


def test_nothing_outside_changes(room) -> None:
    if not room.enforces("writes outside the scratch"):
        pytest.skip(f"{room.mechanism.name} does not enforce it, and says so")
    before = snapshot(room.home)
    worked = room.attempts(hostile_writes(room))
    assert snapshot(room.home) == before
    # Moving away the program's own files and links inside the scratch is its right; reaching out never works.
    assert [name for name, success in worked.items() if success] == []


def test_modes_and_times_outside(room) -> None:
    precious = room.elsewhere / "precious.txt"
    before = precious.stat()
    room.attempts(
        f"precious = {str(precious)!r}\n"
        "attempt('chmod', lambda: os.chmod(precious, 0))\n"
        "attempt('utime', lambda: os.utime(precious, (1, 1)))\n"
    )
    if room.enforces("changing modes and times of other files"):
        after = precious.stat()
        assert (after.st_mode, after.st_mtime) == (before.st_mode, before.st_mtime)


def test_own_place_is_writable(room) -> None:
    worked = room.attempts("""
import tempfile, multiprocessing
attempt("relative", lambda: open("out.txt", "w").write("x"))
attempt("over source", lambda: open("train.py", "w").write("x"))
attempt("folder", lambda: os.makedirs("runs/1"))
attempt("temp", lambda: tempfile.NamedTemporaryFile("w").write("x"))
attempt("null", lambda: open("/dev/null", "w").write("x"))
attempt("shm", lambda: multiprocessing.get_context("fork").Semaphore(1))
server = socket.create_server(("127.0.0.1", 0))
attempt("loopback", lambda: socket.create_connection(server.getsockname()))
attempt("socket pair", lambda: socket.socketpair())
attempt("unix", lambda: socket.socket(socket.AF_UNIX).bind(os.environ["TMPDIR"] + "/s"))
attempt("rename across", lambda: os.rename("out.txt", "runs/1/out.txt"))
attempt("hard link", lambda: os.link("runs/1/out.txt", "again.txt"))
attempt("git is no link", lambda: os.readlink(".git"))
""")
    assert not worked.pop("git is no link")
    assert all(worked.values()), worked
    assert (room.project_folder / "train.py").read_text() == "print('train')\n"
    assert not (room.project_folder / "out.txt").exists()


def test_deleted_and_changed_cwd(room) -> None:
    result = room.run("""
import shutil
root = os.getcwd()
os.mkdir("deep"); os.chdir("deep"); os.rmdir(root + "/deep")
attempt("no cwd", os.getcwd)
os.chdir("/")
shutil.rmtree(root)
say({"event": "alive"})
""")
    assert result.ended == "exit" and result.status == 0, result
    assert result.events[-1] == {"event": "alive"}
    assert (room.project_folder / "train.py").exists()


def test_what_cannot_be_removed_easily(room) -> None:
    result = room.run("""
os.mkdir("locked"); open("locked/file", "w").close(); os.chmod("locked", 0)
os.makedirs("readonly/below"); os.chmod("readonly/below", 0o500); os.chmod("readonly", 0o500)
os.mkfifo("pipe"); os.symlink("/", "root"); os.symlink("loop", "loop")
for _ in range(400):
    os.mkdir("d" * 20); os.chdir("d" * 20)
open(b"\\xff\\n", "w").close()
""")
    assert result.status == 0, result.stderr  # the room checks that nothing is left
