"""A session: one server in the user's interpreter, any number of runs, nothing left behind.

with Session(interpreter, project) as session:
    result = session.run({"argv": [...]}, timeout=60)
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from autodetach.errors import RunError
from autodetach.isolation.choose import choose
from autodetach.isolation.env import run_environment
from autodetach.isolation.policy import policy_for
from autodetach.runner.interruption import Unwinding, undisturbed
from autodetach.runner.limits import Limits
from autodetach.runner.monitor import Monitor
from autodetach.runner.project import Project
from autodetach.runner.readiness import ServerInfo, death, describe, refusal, silence
from autodetach.runner.removal import remove_tree
from autodetach.runner.run import Ended, Run, RunResult
from autodetach.runner.scratch import Scratch
from autodetach.runner.server import Server
from autodetach.runner.workspace import Workspace

SERVE = Path(__file__).resolve().parent.parent / "agent" / "serve.py"
_MOST_RESTARTS = 3


class Session:
    """Starts on entering ``with``; leaving it ends every process and removes every file.

    Where ``isolation`` chooses landlock or bubblewrap the server and all its runs are confined together. A
    server that dies is started again for the next run. While the server imports torch, ``meanwhile`` is called.
    ``arguments`` are the program's. ``without`` names ways of being faster that are left out
    (``settings.SPEEDUPS``); ``serve`` is for tests. Entering raises InterpreterError if the interpreter has no
    torch, RunError if the server cannot be started, RefusedError if the isolation asked for is not to be had.
    """

    info: ServerInfo

    def __init__(
        self,
        interpreter: Path,
        project: Project,
        *,
        isolation: str = "auto",
        limits: Limits | None = None,
        allow_network: bool = False,
        env: Iterable[str] = (),
        data: Iterable[Path] = (),
        accelerators: bool = True,
        meanwhile: Callable[[], None] = lambda: None,
        arguments: Iterable[str] = (),
        without: Iterable[str] = (),
        serve: Path = SERVE,
    ) -> None:
        self._interpreter, self._project, self._serve = interpreter, project, serve
        self._isolation, self._network, self._env = isolation, allow_network, tuple(env)
        self._data, self._accelerators = tuple(data), accelerators
        self._limits = limits or Limits()
        self._meanwhile, self._arguments, self._without = meanwhile, tuple(arguments), frozenset(without)
        self._marker = secrets.token_hex(12)
        self._lock = threading.RLock()
        self._heard = threading.Condition(self._lock)
        self._server: Server | None = None
        self._servers: list[Server] = []
        self._ready: dict[str, Any] | None = None
        self._restarts = 0
        self._serial = 0
        self._runs: dict[str, Run] = {}
        self._unwinding = Unwinding()

    def __enter__(self) -> Self:
        self._mechanism = choose(self._isolation)
        self._scratch = Scratch()
        self._unwinding.begin()
        try:
            self._workspace = Workspace(self._project, self._scratch.folder)
            self._monitor = Monitor(self._limits, self._scratch, self._end, self._escalate, self._finished)
            if "early" in self._without:
                self._prepare()
            self._start_server()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be copied of the project."""
        return self._workspace.notes

    def start(
        self,
        payload: Mapping[str, Any],
        *,
        patch: Mapping[str, bytes] | None = None,
        timeout: float,
        on_event: Callable[[dict[str, Any]], None] | None = None,
    ) -> Run:
        """Start a run in a fresh copy. ``on_event`` is called from the monitor's thread and may call
        ``kill``.

        Raises RunError if the server or the copy cannot be had, SourceError for a patch that leaves the
        project.
        """
        if "server" in self._without and self._serial and all(run.over for run in self._runs.values()):
            self._escalate()
        with self._lock:
            if self._server is None:
                self._start_server()
            self._serial += 1
            name = f"run-{self._serial}"
            if not self._runs:
                self._empty_temp()
        root = self._workspace.fresh(patch)
        temp = self._scratch.temp / name
        temp.mkdir(mode=0o700)
        run = Run(name, root, self._scratch.wire, timeout, self._limits, on_event, self._end)
        run.copied = self._workspace.size
        request = run.request(
            payload,
            {
                "cwd": str(self._project.cwd_in(root)),
                "project": str(self._project.root),
                "temp": str(temp),
                "rlimits": self._limits.rlimits(),
            },
        )
        with self._lock:
            self._runs[name] = run
            if self._server is None or not self._server.send(request):
                run.over = True
        self._monitor.watch(run)
        return run

    def run(
        self,
        payload: Mapping[str, Any],
        *,
        patch: Mapping[str, bytes] | None = None,
        timeout: float,
        on_event: Callable[[dict[str, Any]], None] | None = None,
    ) -> RunResult:
        """``start`` and wait. Ctrl-C while waiting kills the run."""
        run = self.start(payload, patch=patch, timeout=timeout, on_event=on_event)
        try:
            return run.wait()
        except BaseException:
            run.kill()
            raise

    def close(self) -> None:
        """End everything and remove everything. May be called twice."""
        with undisturbed():
            with self._lock:
                self._server = None
                for run in self._runs.values():
                    if run.ending is None:
                        run.ending = ("killed", "")
                    run.over = True
            for server in self._servers:
                server.stop()
            if hasattr(self, "_monitor"):
                self._monitor.stop()
            if hasattr(self, "_scratch"):
                self._scratch.remove()
        self._unwinding.end()

    def _empty_temp(self) -> None:
        """A run must not find what an earlier one left in ``/tmp``; mount points there stay."""
        for entry in self._scratch.temp.iterdir():
            if entry.name not in self._temp_at_first:
                remove_tree(entry)

    def _program(self) -> dict[str, Any]:
        """What the server needs to know to make the program's imports."""
        project = self._project
        told = {"root": str(project.root), "entry": project.entry, "module": project.module, "cwd": str(project.cwd)}
        return {**told, "argv": self._arguments}

    def _prepare(self) -> None:
        """Our own share of the work before the first run."""
        self._workspace.prepare()
        self._meanwhile()

    def _start_server(self) -> None:
        with self._lock:
            self._restarts += "server" not in self._without
            if self._restarts > 1 + _MOST_RESTARTS:
                raise RunError("the runner was ended by the program again and again")
            self._ready = None
            # What lies in /dev/shm is memory and looks like disk.
            shared_memory = min(filter(None, (self._limits.scratch, self._limits.memory)), default=None)
            policy = policy_for(
                self._project,
                self._interpreter,
                self._scratch,
                self._network,
                shared_memory,
                self._data,
                self._accelerators,
            )
            plan = json.dumps({"program": self._program(), "without": sorted(self._without)})
            command = self._mechanism.command([str(self._interpreter), str(self._serve), plan], policy)
            server = Server(
                command,
                env=run_environment(
                    os.environ,
                    cwd=self._project.cwd,
                    temp=self._scratch.temp,
                    caches=self._scratch.caches,
                    network=self._network,
                    let_through=self._env,
                ),
                cwd=self._scratch.runs,
                complaints=self._scratch.folder / "complaints",
                marker=self._marker,
                on_message=self._hear,
                on_end=lambda: self._lose(server),
            )
            self._server = server
            self._servers.append(server)
        server.start()
        self._prepare()
        self._await_ready(server)
        self._monitor.attach(server.pid)
        self._temp_at_first = {entry.name for entry in self._scratch.temp.iterdir()}

    def _await_ready(self, server: Server) -> None:
        deadline = time.monotonic() + self._limits.ready
        with self._heard:
            while self._ready is None and self._server is server and time.monotonic() < deadline:
                self._heard.wait(0.2)
            ready = self._ready
            silent = ready is None and self._server is server
            if ready is not None and ready.get("ready") is True:
                self.info = describe(ready, self._mechanism, self._network)
                return
            self._server = None
        server.stop(patience=0)
        if ready is not None:
            raise refusal(self._interpreter, ready)
        if silent:
            raise silence(self._interpreter, self._limits.ready)
        raise death(self._interpreter, server.complaint())

    def _hear(self, message: dict[str, Any]) -> None:
        with self._heard:
            if "ready" in message and self._ready is None:
                self._ready = message
                self._heard.notify_all()
            if (run := self._runs.get(str(message.get("started")))) is not None:
                pid = message.get("pid")
                run.pid = pid if isinstance(pid, int) else None
            if (run := self._runs.get(str(message.get("ended")))) is not None:
                status = message.get("status")
                run.ended_with = status if isinstance(status, int) else None
                run.over = True
                self._monitor.look()

    def _lose(self, server: Server) -> None:
        with self._heard:
            if self._server is not server:
                return
            self._server = None
            self._heard.notify_all()
        server.stop(patience=0)
        with self._lock:
            for run in self._runs.values():
                run.over = True

    def _end(self, run: Run, ended: Ended, limit: str) -> None:
        """Kill a run; the first reason given is the one that counts."""
        with self._lock:
            server = self._server
            if run.over or run.ending is not None:
                return
            run.ending, run.killed_at = (ended, limit), time.monotonic()
        if server is not None and not server.send({"kill": run.name}):
            self._lose(server)

    def _escalate(self) -> None:
        """The server did not end a run when told to: it goes, with everything below it."""
        if (server := self._server) is not None:
            self._lose(server)

    def _finished(self, run: Run) -> None:
        with self._lock:
            self._runs.pop(run.name, None)
            if self._server is not None:
                # Once more, for a run that forged its own end and goes on.
                self._server.send({"kill": run.name})
        self._workspace.discard(run.root)
        remove_tree(self._scratch.temp / run.name)
