"""Runs of the program, each for one purpose. The only place that knows what a run's request looks like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autodetach.devices import has_cuda
from autodetach.diagnosis import reader
from autodetach.diagnosis.recording import Pair, Recording
from autodetach.model import FailureKind, Json
from autodetach.runner.project import Project
from autodetach.runner.run import Run, RunResult
from autodetach.runner.session import Session
from autodetach.settings import Settings

KEEPING = frozenset({"grad_on", "no_checkpoint", "undetach", "retensor", "thaw"})
"""Interventions that keep a graph which the program loses."""


@dataclass(frozen=True)
class Horizon:
    """How far a run goes: to ``most`` steps, or to ``least`` once ``seconds`` have passed.

    A step is an optimizer step, or a backward pass where the program updates by hand. ``live_from``: the step from
    which live autograd nodes are counted.
    """

    most: int | None = None
    least: int | None = None
    seconds: float = 0.0
    live_from: int | None = None

    @classmethod
    def beyond(cls, failed_at: int, settings: Settings) -> Horizon:
        """As far as a patch is proved: ``--steps`` beyond the failure, at least three."""
        return cls(most=failed_at + max(settings.steps, 3), live_from=failed_at)


@dataclass(frozen=True)
class Observation:
    recording: Recording
    result: RunResult


class Experiment:
    """A run under way. ``done`` is told what came of it."""

    def __init__(self, run: Run, process: str, done: Callable[[Recording], None]) -> None:
        self._run, self._process, self._done = run, process, done

    def wait(self) -> Observation:
        try:
            result = self._run.wait()
        except BaseException:
            self._run.kill()
            raise
        seen = reader.read(result.events, self._process)
        if not seen.how:
            # a child process that trained says no word at its end, nor does what leaves by os._exit(0)
            # once the program itself has said that it is over, what ends the rest of it is us
            said = any(event.get("event") == "end" for event in result.events)
            death = "" if said else result.death
            seen = replace(seen, death=death, how="" if death else "exit")
        self._done(seen)
        return Observation(seen, result)

    def end(self) -> None:
        """Nobody wants to know any more."""
        self._run.kill()


class Laboratory:
    """Starts runs of one program in one session."""

    def __init__(self, session: Session, project: Project, settings: Settings, tell: Callable[[str], None]) -> None:
        self._session, self._project, self._settings, self._tell = session, project, settings, tell
        self.process = ""
        """The name of the child process whose training is followed; empty for the program itself."""
        self.redirect = False
        """Whether what the program means for CUDA is done on the CPU."""
        self.deaths: list[str] = []
        """How runs ended that did not come to their end: ``RunResult.death``."""
        self._known: list[tuple[Recording, Callable[[], Experiment]]] = []

    def observe(
        self,
        horizon: Horizon | None = None,
        patch: Mapping[str, bytes] | None = None,
        until: Callable[[Json], bool] | None = None,
        **more: Any,
    ) -> Experiment:
        """The program (or a patched one) as it is, to its failure or the horizon; or to the event at which ``until``
        says that enough is known."""
        return self._start("observe", horizon, patch, more, until)

    def reference(
        self,
        pairs: Sequence[Pair] = (),
        horizon: Horizon | None = None,
        *,
        probes: bool = False,
        cut_stale: bool = True,
        **more: Any,
    ) -> Experiment:
        """The program with what is stale cut on the fly, and every reading of ``pairs`` from the start."""
        keys = [p.key for p in pairs if p.birth is not None]
        return self._start(
            "reference", horizon, None, {"pairs": keys, "probes": probes, "cut_stale": cut_stale, **more}
        )

    def shadow(self, interventions: Json, horizon: Horizon | None = None) -> Experiment:
        """The program with every operation watched that lost a graph; ``interventions`` as for ``intervene``."""
        return self._start("shadow", horizon, None, {"interventions": interventions})

    def mended(
        self,
        kind: FailureKind,
        horizon: Horizon | None = None,
        nudge: Sequence[str] = (),
        watch: Sequence[Sequence[Any]] | None = None,
        **interventions: Any,
    ) -> Experiment:
        """The program with every error of that kind mended on the fly.

        Values that leave torch at the sites ``nudge`` are changed a little; ``watch`` are kinds of tensors whose ways
        through the program are followed.
        """
        wanted = {"mend": [kind.value], "nudge": list(nudge), "watch": [list(v) for v in watch or ()], **interventions}
        return self._start("mended", horizon, None, {"interventions": wanted, "probes": bool(watch)})

    def leaking(self, horizon: Horizon, watch: Sequence[Sequence[Any]] = ()) -> Experiment:
        """The program as it is, with what piles up counted; ``watch``: kinds of tensors that are followed."""
        wanted = {"watch": [list(kind) for kind in watch]}
        return self._start("leaking", horizon, None, {"interventions": wanted, "probes": bool(watch)})

    def traced(self, interventions: Json, horizon: Horizon | None = None) -> Experiment:
        """The program with every value's origin remembered, for derivatives that do not reach their input."""
        return self._start("traced", horizon, None, {"interventions": interventions})

    def origins(self, leaves: Sequence[str]) -> Experiment:
        """The program as it is, with what its losses compare told of leaves that were made at these sites."""
        return self._start("origins", None, None, {"interventions": {"leaves": list(leaves)}})

    def intervene(self, interventions: Json, horizon: Horizon | None = None, *, learners: bool = False) -> Experiment:
        """The program with grad mode on at some sites, a graph created or retained by some backward calls.

        ``learners``: where it updates by hand, what it updates is told, too.
        """
        mode = "grad-on" if learners or interventions.keys() & KEEPING else "observe"
        return self._start(mode, horizon, None, {"interventions": interventions})

    def again(self, known: Recording) -> Recording | None:
        """The same run once more; None for a recording that is no run of this laboratory's."""
        made = next((start for recording, start in self._known if recording is known), None)
        return None if made is None else made().wait().recording

    def _start(
        self,
        mode: str,
        horizon: Horizon | None,
        patch: Mapping[str, bytes] | None,
        more: Mapping[str, Any],
        until: Callable[[Json], bool] | None = None,
    ) -> Experiment:
        payload: Json = {
            "mode": mode,
            "process": self.process,
            "argv": list(self._settings.args),
            "device": self._settings.device,
        }
        if self.redirect:
            payload["redirect"] = True
        elif not has_cuda(self._settings.device, self._session.info):
            payload["watch"] = True
        payload["module" if self._project.module else "entry"] = self._project.entry
        if horizon is not None:
            payload["horizon"] = {
                "most": horizon.most,
                "least": horizon.least,
                "seconds": horizon.seconds,
                "live_from": horizon.live_from,
            }
        payload.update(more)

        def start() -> Experiment:
            started: list[Run] = []
            enough: list[bool] = []

            def heard(event: Json) -> None:
                self._event(event)
                if until is not None and until(event):
                    enough.append(True)
                    for run in started:
                        run.kill()

            run = self._session.start(payload, patch=patch, timeout=self._settings.timeout, on_event=heard)
            started.append(run)
            if enough:  # heard before the run was known here
                run.kill()
            return Experiment(run, self.process, done)

        def done(seen: Recording) -> None:
            if patch is None:
                self._known.append((seen, start))
            if seen.death:
                self.deaths.append(seen.death)

        return start()

    def _event(self, event: Json) -> None:
        if event.get("event") == "step":
            self._tell(f"step {event.get('n')}")
