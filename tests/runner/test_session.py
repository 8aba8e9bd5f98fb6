import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from autodetach.errors import InterpreterError, RefusedError, RunError, UsageError
from autodetach.runner.limits import Limits
from autodetach.runner.project import Project
from autodetach.runner.session import Session

STUB = Path(__file__).with_name("stub_server.py")


@pytest.fixture
def project(tmp_path) -> Project:
    folder = tmp_path / "with space ü"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    (folder / "train.py").write_text("print('train')\n")
    return Project.discover(folder / "train.py", None, folder)


def session(project, **options) -> Session:
    return Session(Path(sys.executable), project, serve=STUB, **options)


def test_a_run(project) -> None:
    with session(project) as runner:
        assert runner.info.python.startswith("3.") and runner.info.isolation in (
            "bubblewrap",
            "landlock",
            "none",
        )
        result = runner.run(
            {
                "program": "import os; say({'event': 'cwd', 'cwd': os.getcwd()}); open('x', 'w')\n"
                "print(open('train.py').read())"
            },
            timeout=10,
        )
    assert (result.ended, result.status, result.dropped, result.limit) == ("exit", 0, 0, "")
    assert result.events == ({"event": "cwd", "cwd": result.root},)
    assert result.stdout == "print('train')\n\n" and result.stderr == ""
    assert not os.path.exists(result.root) and not (project.root / "x").exists()


def test_patch_is_run(project) -> None:
    with session(project) as runner:
        result = runner.run({"program": "exec(open('train.py').read())"}, patch={"train.py": b"print(42)"}, timeout=10)
        assert result.stdout == "42\n"
        assert runner.run({"program": "exec(open('train.py').read())"}, timeout=10).stdout == "train\n"


def test_temp_is_fresh_for_every_run(project) -> None:
    program = """
import os
temp = os.path.dirname(os.environ["TMPDIR"])
print(os.listdir(temp))
open(temp + "/x", "w")
"""
    with session(project) as runner:
        assert "'x'" not in runner.run({"program": program}, timeout=10).stdout
        assert "'x'" not in runner.run({"program": program}, timeout=10).stdout


def test_events_arrive_live_and_may_end_the_run(project) -> None:
    heard = []

    def listen(event):
        heard.append(event["event"])
        if event["event"] == 3:
            run_box[0].kill()

    with session(project) as runner:
        program = "import time\nfor n in range(100): say({'event': n}); time.sleep(0.05)"
        run_box = [runner.start({"program": program}, timeout=20, on_event=listen)]
        result = run_box[0].wait()
    assert result.ended == "killed" and 4 <= len(heard) < 10


def test_what_a_listener_raises_comes_out_of_wait(project) -> None:
    def listen(event):
        raise KeyError("mine")

    with session(project) as runner, pytest.raises(KeyError, match="mine"):
        runner.run({"program": "import time; say({'event': 1}); time.sleep(20)"}, timeout=20, on_event=listen)


def test_poll(project) -> None:
    with session(project) as runner:
        run = runner.start({"program": "import time; time.sleep(0.3)"}, timeout=10)
        assert run.poll() is None
        result = run.wait()
        assert run.poll() is result


def test_several_at_once(project) -> None:
    with session(project) as runner:
        begun = time.monotonic()
        runs = [
            runner.start(
                {"program": f"import time; open('n', 'w').write('{n}'); time.sleep(0.4)\nprint(open('n').read())"},
                timeout=20,
            )
            for n in range(8)
        ]
        assert [run.wait().stdout for run in runs] == [f"{n}\n" for n in range(8)]
        assert time.monotonic() - begun < 3


def test_one_of_several_is_killed(project) -> None:
    with session(project) as runner:
        stays = runner.start({"program": "import time; time.sleep(0.6); print('stayed')"}, timeout=20)
        goes = runner.start({"program": "import time; time.sleep(60)"}, timeout=20)
        goes.kill()
        assert goes.wait().ended == "killed" and stays.wait().stdout == "stayed\n"


def test_limits_strike_the_right_one(project) -> None:
    with session(project, limits=Limits(memory=250 << 20)) as runner:
        good = runner.start({"program": "import time; time.sleep(1)"}, timeout=20)
        hog = runner.start({"program": "import time; x = bytearray(b'x') * (400 << 20); time.sleep(20)"}, timeout=20)
        assert hog.wait().ended == "limit" and good.wait().ended == "exit"


def test_threads_share_a_session(project) -> None:
    results = []
    with session(project) as runner:

        def work(n: int) -> None:
            results.append(runner.run({"program": f"print({n})"}, timeout=20).stdout)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(results) == [f"{n}\n" for n in range(6)]


def test_sessions_side_by_side(project) -> None:
    sessions = [session(project) for _ in range(4)]
    for one in sessions:
        one.__enter__()
    runs = [one.start({"program": "print('x')"}, timeout=20) for one in sessions]
    assert all(run.wait().stdout == "x\n" for run in runs)
    for one in sessions:
        one.close()
        one.close()


def test_close_ends_what_runs(project) -> None:
    with session(project) as runner:
        run = runner.start({"program": "import time; time.sleep(60)"}, timeout=60)
    assert run.wait().ended == "killed"


def test_no_torch(project, monkeypatch) -> None:
    monkeypatch.setenv("STUB", "no-torch")
    with pytest.raises(InterpreterError, match=r"has no torch.*--python"):
        session(project).__enter__()


def test_server_that_crashes(project, monkeypatch) -> None:
    monkeypatch.setenv("STUB", "crash")
    with pytest.raises(RunError, match="ended before it was ready: the stub was told to crash"):
        session(project).__enter__()


def test_server_that_says_nothing(project, monkeypatch) -> None:
    monkeypatch.setenv("STUB", "silent")
    begun = time.monotonic()
    with pytest.raises(RunError, match=r"not ready after 0.3 s"):
        session(project, limits=Limits(ready=0.3)).__enter__()
    assert time.monotonic() - begun < 5


def test_server_that_dies_again_and_again(project) -> None:
    with session(project) as runner, pytest.raises(RunError, match="again and again"):
        for _ in range(10):
            runner.run({"program": "import os, time; os.kill(os.getppid(), 9); time.sleep(20)"}, timeout=20)


def test_isolation_words(project) -> None:
    with pytest.raises(UsageError, match="unknown isolation"):
        session(project, isolation="magic").__enter__()


def test_nowhere_to_write(project, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    with pytest.raises(RunError, match="set TMPDIR"):
        session(project).__enter__()


def test_relative_pythonpath_means_the_users_folder(project, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "lib")
    with session(project) as runner:
        result = runner.run({"program": "import os; print(os.environ['PYTHONPATH'])"}, timeout=10)
    assert result.stdout.strip() == str(project.root / "lib")


def test_require_refuses_without_a_mechanism(project, monkeypatch) -> None:
    monkeypatch.setattr("autodetach.isolation.choose.known", lambda: ())
    with pytest.raises(RefusedError):
        session(project, isolation="require").__enter__()
    with session(project) as runner:
        assert runner.info.isolation == "none" and "network" in runner.info.not_enforced


DEATHS = {
    "print(1)": "",
    "import os; os._exit(0)": "",
    "say({'event': 'stop'}); import time; time.sleep(30)": "",
    "import os; os._exit(3)": "ended with exit status 3",
    "import os; os.kill(os.getpid(), 11)": "ended with the signal SIGSEGV",
    "import os; os.kill(os.getpid(), 9)": "ended with the signal SIGKILL, as the kernel does it to programs "
    "when memory runs out",
    "import os, time; os.kill(os.getppid(), 9); time.sleep(30)": "ended its runner, so that the run was lost",
    "import time; time.sleep(30)": "ran for more than 1 s; --timeout allows more",
}


def test_how_a_program_died(project) -> None:
    with session(project) as runner:
        assert {code: runner.run({"program": code}, timeout=1).death for code in DEATHS} == DEATHS
