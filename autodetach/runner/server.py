"""The server process of a session: starting it, speaking to it, ending it with everything below it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from autodetach.errors import RunError
from autodetach.runner import guard, proctree

LONGEST_LINE = 1 << 20


class Server:
    """One server under its guard. ``on_message`` and ``on_end`` are called from the reader thread."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        complaints: Path,
        marker: str,
        on_message: Callable[[dict[str, Any]], None],
        on_end: Callable[[], None],
    ) -> None:
        self._command, self._env, self._cwd = list(command), {**env, proctree.MARKER: marker}, cwd
        self._marker = marker
        self._complaints = complaints
        self._on_message, self._on_end = on_message, on_end
        self._sending = threading.Lock()
        self._stopping = threading.Lock()
        self._spawned = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._failure: OSError | None = None
        self._lifeline = -1
        self._stopped = False
        self._reader = threading.Thread(target=self._read, name="autodetach-server", daemon=True)

    def start(self) -> None:
        """Raises RunError if nothing can be started at all."""
        self._reader.start()
        self._spawned.wait()
        if self._failure is not None:
            raise RunError(f"cannot start the runner: {self._failure}")

    @property
    def pid(self) -> int:
        """The guard's process id: everything of the session is below it."""
        return self._process.pid if self._process else -1

    def send(self, message: Mapping[str, Any]) -> bool:
        """False if the server no longer listens."""
        process = self._process
        if process is None or process.stdin is None:
            return False
        try:
            with self._sending:
                process.stdin.write(json.dumps(message).encode() + b"\n")
                process.stdin.flush()
        except (OSError, ValueError):
            return False
        return True

    def stop(self, *, patience: float = 1.0) -> None:
        """End the server and everything it started; never raises. May be called twice."""
        process = self._process
        if process is None:
            return
        with self._stopping:
            self._stop(process, patience)
        if self._reader is not threading.current_thread():
            self._reader.join(5.0)

    def _stop(self, process: subprocess.Popen[bytes], patience: float) -> None:
        if self._stopped:
            return
        self._stopped = True
        if patience > 0 and self.send({"quit": True}):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
        self._cut_lifeline()
        try:
            process.wait(12.0)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()
        proctree.end_marked(self._marker)
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()

    def complaint(self) -> str:
        """The last lines the server wrote to its standard error."""
        with contextlib.suppress(OSError), self._complaints.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
            return file.read().decode("utf-8", "replace").strip()
        return ""

    def _cut_lifeline(self) -> None:
        fd, self._lifeline = self._lifeline, -1
        if fd >= 0:
            os.close(fd)

    def _read(self) -> None:
        # Started from this thread on purpose: "die with the parent" is tied to the thread that forked, and
        # this one lives exactly as long as the server's output.
        try:
            process = self._spawn()
        except OSError as error:
            self._failure = error
            self._spawned.set()
            return
        self._process = process
        self._spawned.set()
        assert process.stdout is not None
        with process.stdout as stream:
            while line := stream.readline(LONGEST_LINE):
                if (message := parse_line(line)) is not None:
                    self._on_message(message)
        self._on_end()

    def _spawn(self) -> subprocess.Popen[bytes]:
        read_end, self._lifeline = os.pipe()
        try:
            with self._complaints.open("wb") as complaints:
                return subprocess.Popen(
                    [sys.executable, "-I", "-S", guard.__file__, str(read_end), *self._command],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=complaints,
                    env=self._env,
                    cwd=self._cwd,
                    pass_fds=(read_end,),
                    start_new_session=True,
                )
        except OSError:
            self._cut_lifeline()
            raise
        finally:
            os.close(read_end)


def parse_line(line: bytes) -> dict[str, Any] | None:
    """One JSON object of a hostile stream, or None."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError, MemoryError):
        return None
    return message if isinstance(message, dict) else None
