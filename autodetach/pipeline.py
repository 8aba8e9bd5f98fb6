"""The story on one page: run, diagnose, propose, verify, report.

run ──▶ diagnose ──▶ propose ──▶ verify ──▶ report
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from autodetach.devices import about, device_of, insist_on_device, no_further, wants_redirection
from autodetach.diagnosis.recording import Recording
from autodetach.errors import UsageError
from autodetach.laboratory import Laboratory, Observation
from autodetach.model import Candidate, Level, Outcome, Rejected, Status, Trial
from autodetach.progress import Progress
from autodetach.runner.interpreter import find_interpreter
from autodetach.runner.limits import Limits, cut_words
from autodetach.runner.project import Project
from autodetach.runner.run import RunResult, end_in_words
from autodetach.runner.session import Session
from autodetach.settings import Settings

if TYPE_CHECKING:  # all that edits source is loaded while the program's interpreter imports torch: see _load_the_rest
    from autodetach.diagnosis.plan import Inquiry
    from autodetach.source.book import SourceBook
    from autodetach.verification.judge import Judge
    from autodetach.verification.standard import Standard

MOST_TRIALS = 24
HINTS = {
    "EOFError": "the program reads standard input, which is empty here; let it read a file or take arguments after --",
    "[Errno 27] File too large": "a run may write no more to disk than --max-scratch says",
}
"""For failures whose cause is how programs are run here, by what their tracebacks say."""
NO_REFERENCE = "no run tells how this program is meant to train, so no patch can be proven"


@dataclass(frozen=True)
class _Work:
    settings: Settings
    progress: Progress
    session: Session
    project: Project
    laboratory: Laboratory
    book: SourceBook
    interpreter: str
    begun: float


def fix(settings: Settings, progress: Progress) -> Outcome:
    """Find the fault of a program and the smallest patch that trains as it should. Raises AutodetachError."""
    for work in _opened(settings, progress):
        observed, early = _run(work)
        observed, early, notes = _hidden(work, observed, early)
        leak = _leak(work, observed, early) if early is not None else None
        if early is not None and leak is None:
            return early
        inquiry = leak or _diagnose(work, observed)
        inquiry = replace(inquiry, notes=(*inquiry.notes, *notes))
        judge = _judge(work, hurry=not settings.all and "sure" not in settings.without)
        inquiry, trials = _verify(work, observed, inquiry, judge)
        return _on_its_device(_report(work, inquiry, trials), observed, judge)
    raise AssertionError("a session that opens gives one outcome")


def explain(settings: Settings, progress: Progress) -> Outcome:
    """What went wrong and why, without proposing anything. Raises AutodetachError."""
    for work in _opened(settings, progress):
        observed, early = _run(work)
        observed, early, notes = _hidden(work, observed, early)
        leak = _leak(work, observed, early) if early is not None else None
        if early is not None and leak is None:
            return early
        outcome = _report(work, leak or _diagnose(work, observed), ())
        device = device_of(observed, None)
        return replace(outcome, device=device, notes=(*outcome.notes, *notes, *about(device)))
    raise AssertionError("a session that opens gives one outcome")


def verify(settings: Settings, patch_text: str, progress: Progress) -> Outcome:
    """Hold anybody's patch to the criteria that our own have to pass. Raises AutodetachError."""
    for work in _opened(settings, progress):
        from autodetach.source.diff import patched_names, read_patch

        root, below = work.project.root, _below(work.project)
        named = {name: f"{below}/{name}" if below else name for name in patched_names(patch_text)}
        if not all((root / name).is_file() for name in named.values()):
            named = {name: name for name in named}
        files = {name: (root / path).read_bytes() for name, path in named.items() if (root / path).is_file()}
        patched = {named[name]: data for name, data in read_patch(patch_text, files).items()}
        observed, early = _run(work)
        if early is not None:
            return early
        inquiry = _diagnose(work, observed)
        judge = _judge(work)
        trial = _judged(work, inquiry, judge, patch_text, patched)
        from autodetach.verification import noise

        if noise.may_explain(inquiry, [trial]):
            noisy = noise.measured(work.laboratory, inquiry)
            if not noise.is_exact(noisy):
                inquiry, trial = noisy, _judged(work, noisy, judge, patch_text, patched)
        outcome = _on_its_device(_report(work, inquiry, (trial,)), observed, judge)
        originals = {named[name]: data for name, data in files.items()}
        return replace(outcome, originals={**outcome.originals, **originals}, patched=patched)
    raise AssertionError("a session that opens gives one outcome")


def _below(project: Project) -> str:
    """The user's folder relative to the project's root; empty where it is the root or lies elsewhere."""
    inside = project.cwd_inside and project.cwd != project.root
    return project.cwd.relative_to(project.root).as_posix() if inside else ""


def _judge(work: _Work, hurry: bool = False) -> Judge:
    from autodetach.verification.judge import Judge

    return Judge(work.laboratory, work.book, _below(work.project), hurry)


def _on_its_device(outcome: Outcome, observed: Recording, judge: Judge) -> Outcome:
    """With the device of the failing run, and of the run of the patch if one was chosen."""
    proof = judge.run_of(outcome.chosen.diff) if outcome.chosen is not None else None
    return replace(outcome, device=device_of(observed, proof))


def _judged(work: _Work, inquiry: Inquiry, judge: Judge, patch_text: str, patched: Mapping[str, bytes]) -> Trial:
    """The best that the patch can reach by any of the inquiry's standards."""
    from autodetach.source.diff import size_of

    candidate = Candidate("given", "the patch given with --patch", (), *size_of(patch_text))
    work.progress.stage("judging the patch")
    trial = Trial(candidate, patch_text, (Rejected("reference", NO_REFERENCE),), None, 0.0)
    for standard in (s for plan in inquiry.plans for s in plan.standard.tiers()):
        begun = time.monotonic()
        verdicts = judge.judge(patch_text, patched, standard, same_values=False)
        level = None if any(isinstance(v, Rejected) for v in verdicts) else standard.level
        trial = Trial(candidate, patch_text, tuple(verdicts), level, time.monotonic() - begun)
        if level is not None:
            break
    work.progress.trial(trial)
    return trial


def _opened(settings: Settings, progress: Progress) -> Iterator[_Work]:
    begun = time.monotonic()
    project = Project.discover(settings.script, settings.module, settings.cwd)
    missing = next((path for path in settings.data if not path.exists()), None)
    if missing is not None:
        raise UsageError(f"there is no {missing} to be read (--data)")
    interpreter = find_interpreter(settings.python, project)
    session = Session(
        interpreter,
        project,
        isolation=settings.isolation,
        allow_network=settings.allow_network,
        env=settings.env,
        data=settings.data,
        accelerators=settings.device != "cpu",
        meanwhile=_load_the_rest,
        arguments=settings.args,
        without=settings.without,
        limits=_limits(settings),
    )
    try:
        progress.stage("starting the program's interpreter")
        with session:
            insist_on_device(settings, session.info, interpreter)
            laboratory = Laboratory(session, project, settings, progress.update)
            from autodetach.source.book import SourceBook

            book = SourceBook(project.root)
            yield _Work(settings, progress, session, project, laboratory, book, str(interpreter), begun)
    finally:
        progress.done()


def _load_the_rest() -> None:
    """What the diagnosis needs, in the second that we have to wait anyway."""
    import autodetach.diagnosis.inquiry
    import autodetach.verification.judge  # noqa: F401


def _limits(settings: Settings) -> Limits:
    limits = Limits(
        cpu=settings.max_cpu,
        processes=settings.max_processes,
        scratch=settings.max_scratch,
        output=settings.max_output,
        output_on_disk=max(Limits.output_on_disk, 2 * settings.max_output),
    )
    return limits if settings.max_memory is None else replace(limits, memory=settings.max_memory)


def _run(work: _Work) -> tuple[Recording, Outcome | None]:
    """The program as it is: its recording, and the outcome where there is no failure of ours."""
    work.progress.stage(f"running {work.settings.program}")
    notes: tuple[str, ...] = ()
    seen = work.laboratory.observe().wait()
    if wants_redirection(seen, work.session.info, work.settings):
        seen, notes = _redirected(work, seen)
    work.laboratory.process = seen.recording.process
    if seen.recording.failure is None:
        outcome, device = _nothing_of_ours(seen, work), device_of(seen.recording, None)
        outcome = replace(outcome, device=device, notes=(*outcome.notes, *about(device), *notes))
        return seen.recording, replace(outcome, **_facts(work))  # type: ignore[arg-type]
    return seen.recording, None


def _redirected(work: _Work, before: Observation) -> tuple[Observation, tuple[str, ...]]:
    """The program once more, with what it means for CUDA done on the CPU; as it was, with a note, where that leads no
    further.
    """
    work.progress.stage(f"running {work.settings.program} on the CPU: there is no CUDA")
    work.laboratory.redirect = True
    seen = work.laboratory.observe().wait()
    if seen.recording.redirected and (seen.recording.failure is not None or seen.recording.backwards):
        return seen, ()
    work.laboratory.redirect = False
    return before, no_further(seen.recording)


def _nothing_of_ours(seen: Observation, work: _Work) -> Outcome:
    recording, result, settings = seen.recording, seen.result, work.settings

    def shown(text: str) -> str:
        """The user's own paths, not the scratch copy's."""
        return text.replace(result.root, str(work.project.root)) if result.root else text

    came = f"{_count(recording.progress, 'step')} and {_count(len(recording.backwards), 'backward pass', 'es')}"
    status = _exit_status(result)
    if result.ended == "timeout":
        text = f"no failure within {settings.timeout:g} s ({came}); a longer --timeout may reach it"
        return Outcome(Status.NOT_REACHED, detail=text)
    if result.ended in ("limit", "lost"):
        return Outcome(Status.NOT_REACHED, detail=f"the program {result.death} ({came})")
    if recording.how == "error" or status not in (0, None):
        last = f"the program ended with {end_in_words(status)}"
        text = recording.traceback or f"{result.stderr.rstrip()}\n{last}".lstrip("\n")
        notes = tuple(note for words, note in HINTS.items() if words in text)
        if result.cut and not recording.traceback:
            notes = (*notes, cut_words(_limits(settings)))
        return Outcome(Status.FAILED_OTHERWISE, detail=shown(text), notes=notes)
    notes = () if recording.backwards else ("the program never calls backward",)
    return Outcome(Status.CLEAN, detail=came, notes=notes)


def _exit_status(result: RunResult) -> int | None:
    """What the program said as it left: by the time it is gone we may have ended it ourselves."""
    said = [e.get("status") for e in result.events if e.get("event") == "end"]
    return next((s for s in reversed(said) if isinstance(s, int)), result.status)


def _count(number: int, noun: str, plural: str = "s") -> str:
    return f"{number} {noun if number == 1 else noun + plural}"


def _hidden(
    work: _Work, observed: Recording, early: Outcome | None
) -> tuple[Recording, Outcome | None, tuple[str, ...]]:
    """A fault that ``retain_graph=True`` hides is told; with ``--leaks`` it is the fault to repair."""
    if early is None or early.status is not Status.CLEAN:
        return observed, early, ()
    from autodetach.diagnosis import kept_too_long

    hidden = kept_too_long.look(work.laboratory, observed)
    if hidden is None:
        return observed, early, ()
    if work.settings.leaks:
        return hidden.failing, None, (hidden.note,)
    return observed, replace(early, notes=(*early.notes, f"{hidden.note}; --leaks repairs it")), ()


def _leak(work: _Work, observed: Recording, early: Outcome) -> Inquiry | None:
    """The inquiry into a graph that grows without any error, where that was asked for and there is one."""
    if early.status is not Status.CLEAN or not work.settings.leaks:
        return None
    from autodetach.diagnosis import leak

    work.progress.stage("looking for a graph that grows")
    return leak.inquire(work.laboratory, observed, work.book)


def _diagnose(work: _Work, observed: Recording) -> Inquiry:
    from autodetach.diagnosis.inquiry import inquire
    from autodetach.diagnosis.truncation import FEWEST_BEFORE_DEATH
    from autodetach.verification import noise

    work.progress.stage("reference run")
    before = len(work.laboratory.deaths)
    inquiry = inquire(work.laboratory, observed, work.book, work.settings)
    deaths = dict.fromkeys(f"in a reference run the program {death}" for death in work.laboratory.deaths[before:])
    plans = inquiry.plans
    if deaths and inquiry.steps_proved < FEWEST_BEFORE_DEATH:
        plans = tuple(replace(plan, standard=replace(plan.standard, level=Level.UNSAFE)) for plan in plans)
    inquiry = replace(inquiry, plans=plans, notes=(*inquiry.notes, *deaths))
    return inquiry if noise.is_exact(inquiry) else noise.measured(work.laboratory, inquiry)


def _verify(work: _Work, observed: Recording, inquiry: Inquiry, judge: Judge) -> tuple[Inquiry, tuple[Trial, ...]]:
    """Try the candidates; where none is safe because runs differ, see whether they would without any patch."""
    from autodetach.verification import noise

    trials = _tried(work, observed, inquiry, judge)
    if any(t.level is Level.SAFE for t in trials) or not noise.may_explain(inquiry, trials):
        return inquiry, trials
    work.progress.stage("the same run once more")
    noisy = noise.measured(work.laboratory, inquiry)
    return (inquiry, trials) if noise.is_exact(noisy) else (noisy, _tried(work, observed, noisy, judge))


def _tried(work: _Work, observed: Recording, inquiry: Inquiry, judge: Judge) -> tuple[Trial, ...]:
    """The candidates of each plan, smallest first, until one is safe.

    Most often the first one is. Once one has failed, the run of the next is under way while one is judged.
    """
    trials: list[Trial] = []
    two = _has_room_for_two(work, observed)
    for plan in inquiry.plans:
        for standard in plan.standard.tiers():
            work.progress.stage("trying patches")
            passed = False
            candidates = plan.candidates[:MOST_TRIALS]
            for number, candidate in enumerate(candidates):
                if two and trials:
                    for each in candidates[number : number + 2]:
                        judge.start(each, standard)
                trial = judge.try_one(candidate, standard)
                passed = passed or trial.level is not None
                if trial in trials:
                    continue
                if trial.level is Level.SAFE and not any(t.level is Level.SAFE for t in trials):
                    trials += _without_leftovers(work, observed, judge, trial, standard)
                trials.append(trial)
                work.progress.trial(trial)
                if trial.level is Level.SAFE and not work.settings.all:
                    judge.abandon()
                    return tuple(trials)
            if passed:
                break  # a weaker standard would only let pass what the stricter one found wanting
    return tuple(trials)


def _has_room_for_two(work: _Work, observed: Recording) -> bool:
    """Whether two runs at once take nothing from each other: there is a core for each, and no GPU to be shared."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return "pairs" not in work.settings.without and cores > 1 and not observed.failure_devices - {"cpu"}


def _without_leftovers(
    work: _Work, observed: Recording, judge: Judge, found: Trial, standard: Standard
) -> Iterator[Trial]:
    """The safe patch that also takes out what an earlier wrong cure left in the program, if that is safe, too."""
    from autodetach.repairs.drop_earlier_cure import DropEarlierCure

    for candidate in DropEarlierCure().beside(found.candidate, observed, work.book):
        trial = judge.try_one(candidate, standard)
        work.progress.trial(trial)
        yield trial
        if trial.level is Level.SAFE:
            return


def _report(work: _Work, inquiry: Inquiry, trials: tuple[Trial, ...]) -> Outcome:
    best = next((t for t in trials if t.level is Level.SAFE), None)
    if best is None and work.settings.unsafe:
        best = next((t for t in trials if t.level is Level.UNSAFE), None)
    outcome = Outcome(
        Status.REPAIRED if best is not None else Status.UNREPAIRED,
        diagnosis=inquiry.diagnosis,
        trials=trials,
        chosen=best,
        diff=best.diff if best is not None else "",
        patched=work.book.patched(best.candidate.edits) if best is not None else {},
        originals=dict(work.book.originals),
        steps_proved=inquiry.steps_proved,
        notes=(*inquiry.notes, *work.session.notes),
    )
    return replace(outcome, **_facts(work))  # type: ignore[arg-type]


def _facts(work: _Work) -> dict[str, object]:
    return {
        "isolation": work.session.info.isolation,
        "interpreter": work.interpreter,
        "torch": work.session.info.torch,
        "seconds": time.monotonic() - work.begun,
    }
