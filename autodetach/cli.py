"""The commands and their exit statuses. What they do is decided elsewhere; the start loads nothing heavy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import typer

from autodetach import __version__
from autodetach.errors import AutodetachError, RefusedError, UsageError
from autodetach.model import Level, Outcome, Status
from autodetach.progress import Progress, Silent, choose
from autodetach.report.interface import make
from autodetach.report.out import publish, put, tell
from autodetach.report.plain import neutral
from autodetach.settings import FORMATS, ISOLATIONS, Settings, load, load_programs, part_of

_STATUS = {
    Status.CLEAN: 0,
    Status.REPAIRED: 0,
    Status.UNREPAIRED: 1,
    Status.FAILED_OTHERWISE: 3,
    Status.NOT_REACHED: 3,
}
_INTERRUPTED, _OUR_FAULT = 130, 70
_IGNORE_INTERRUPT = (signal.SIGINT, signal.SIG_IGN)
_stopped = Event()
"""In a worker: the user has interrupted."""

app = typer.Typer(
    name="autodetach",
    help="Repair 'Trying to backward through the graph a second time' and its siblings.\n\n"
    "The failing program is run in a sandbox, the expression to blame is found in its own graph, and the "
    "smallest patch that makes it train as it should is printed, proven by running it.",
    epilog="""\b
Examples:
  autodetach fix train.py                  print the patch
  autodetach fix train.py | git apply      and take it
  autodetach fix --apply train.py -- --epochs 3
  autodetach explain -m project.train      what went wrong, no patch
  autodetach verify train.py --patch colleague.diff

\b
Exit status:
  0  nothing to repair, or a verified patch was printed or applied
  1  a fault was found, and no verified patch
  2  usage or configuration
  3  the program failed in another way, or did not reach the fault
  4  refused (uncommitted changes, a file changed meanwhile, no isolation)""",
    rich_markup_mode=None,  # plain help: rich alone would double the time that --help takes
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"autodetach {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _common(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(UsageError.status)


# Values are passed on as text: settings.py reads them, in the same words for flags, variables and the file.
_Program = Annotated[
    list[str] | None,
    typer.Argument(metavar="SCRIPT [-- ARGS]", help="The program, and its own arguments after --."),
]
_Module = Annotated[str | None, typer.Option("-m", metavar="MODULE", help="Run a module, as python -m does.")]
_Python = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="The program's interpreter. [the active virtual environment, else .venv, else our own]",
    ),
]
_Steps = Annotated[
    str | None,
    typer.Option(metavar="N", help="Optimizer steps a patch must survive beyond the failure. [12]"),
]
_Timeout = Annotated[str | None, typer.Option(metavar="SECONDS", help="Wall-clock seconds of a single run. [300]")]
_Cpu = Annotated[
    str | None,
    typer.Option(metavar="SECONDS", help="CPU seconds of a run, its processes together. [as the timeout allows]"),
]
_Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Resident memory of a run, its processes together, such as 12G. [80 % of the machine's]"
    ),
]
_Processes = Annotated[str | None, typer.Option(metavar="N", help="Processes of a run at the same time. [512]")]
_Scratch = Annotated[str | None, typer.Option(metavar="SIZE", help="What a run may write to disk, such as 500M. [8G]")]
_Output = Annotated[
    str | None, typer.Option(metavar="SIZE", help="What is kept of a run's stdout and of its stderr. [256K]")
]
_Isolation = Annotated[
    str | None,
    typer.Option(metavar="HOW", help=", ".join(ISOLATIONS) + ".", autocompletion=lambda: list(ISOLATIONS)),
]
_Network = Annotated[
    bool | None, typer.Option("--allow-network/--no-allow-network", help="Let the program use the network.")
]
_Env = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Let a variable through that looks like a secret. Repeatable."),
]
_Data = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="Let the program read what the isolation would hide. Repeatable."),
]
_Device = Annotated[
    str | None,
    typer.Option(metavar="DEVICE", help="auto, cpu, cuda or cuda:N.", autocompletion=lambda: ["auto", "cpu", "cuda"]),
]
_Leaks = Annotated[bool | None, typer.Option("--leaks/--no-leaks", help="Also look for a graph that grows silently.")]
_Format = Annotated[
    str | None,
    typer.Option(metavar="FORMAT", help=", ".join(FORMATS) + ".", autocompletion=lambda: list(FORMATS)),
]
_File = Annotated[str | None, typer.Option(metavar="FILE", help="Write the output there instead of to stdout.")]
_Verbose = Annotated[int, typer.Option("-v", "--verbose", count=True, help="Say more; -vv for our own tracebacks.")]
_Quiet = Annotated[bool | None, typer.Option("-q", "--quiet/--no-quiet", help="No progress and no story on stderr.")]
_Unsafe = Annotated[
    bool | None,
    typer.Option("--unsafe/--no-unsafe", help="Also take a patch that no reference run could decide on."),
]
_All = Annotated[bool | None, typer.Option("--all/--no-all", help="Show every candidate with its verdicts.")]


@app.command(
    epilog="""\b
Examples:
  autodetach fix train.py | git apply
  autodetach fix --apply train.py -- --epochs 3
  autodetach fix -m project.train
  autodetach fix --check train.py          for CI: exit 1 if there is anything to repair"""
)
def fix(
    program: _Program = None,
    module: _Module = None,
    apply: Annotated[bool | None, typer.Option("--apply/--no-apply", help="Write the patch into the files.")] = None,
    check: Annotated[
        bool | None, typer.Option("--check/--no-check", help="Exit 1 as soon as there is anything to repair.")
    ] = None,
    allow_dirty: Annotated[
        bool | None, typer.Option("--allow-dirty/--no-allow-dirty", help="Apply over uncommitted changes.")
    ] = None,
    interactive: Annotated[
        bool | None,
        typer.Option("-i", "--interactive/--no-interactive", help="Choose among all that passed."),
    ] = None,
    unsafe: _Unsafe = None,
    all: _All = None,
    steps: _Steps = None,
    timeout: _Timeout = None,
    max_cpu: _Cpu = None,
    max_memory: _Memory = None,
    max_processes: _Processes = None,
    max_scratch: _Scratch = None,
    max_output: _Output = None,
    python: _Python = None,
    device: _Device = None,
    leaks: _Leaks = None,
    isolation: _Isolation = None,
    allow_network: _Network = None,
    env: _Env = None,
    data: _Data = None,
    output_format: _Format = None,
    output_file: _File = None,
    verbose: _Verbose = 0,
    quiet: _Quiet = None,
) -> int:
    """Print the smallest verified patch for a failing program, as a unified diff."""
    settings = _settings(locals())
    _settle(settings)
    if settings.interactive:
        from autodetach.report.choice import choose_patch, insist_on_terminal

        insist_on_terminal(sys.stdin)
    from autodetach import pipeline

    outcome = _watched(settings, lambda progress: pipeline.fix(settings, progress))
    tell(settings, outcome)
    if settings.interactive:
        outcome = choose_patch(outcome, sys.stderr, sys.stdin)
    publish(settings, outcome)
    if settings.apply and outcome.status is Status.REPAIRED:
        _apply(outcome, settings)
    return 1 if settings.check and outcome.chosen is not None else _STATUS[outcome.status]


@app.command(epilog="Example: autodetach explain train.py -- --epochs 3")
def explain(
    program: _Program = None,
    module: _Module = None,
    timeout: _Timeout = None,
    max_cpu: _Cpu = None,
    max_memory: _Memory = None,
    max_processes: _Processes = None,
    max_scratch: _Scratch = None,
    max_output: _Output = None,
    python: _Python = None,
    device: _Device = None,
    leaks: _Leaks = None,
    isolation: _Isolation = None,
    allow_network: _Network = None,
    env: _Env = None,
    data: _Data = None,
    output_format: _Format = None,
    output_file: _File = None,
    verbose: _Verbose = 0,
    quiet: _Quiet = None,
) -> int:
    """Tell what went wrong and where, without proposing a patch."""
    settings = _settings(locals(), output_format="text")
    from autodetach import pipeline

    outcome = _watched(settings, lambda progress: pipeline.explain(settings, progress))
    tell(settings, outcome)
    publish(settings, outcome)
    return _STATUS[outcome.status]


@app.command(epilog="Example: git diff | autodetach verify train.py --patch -")
def verify(
    patch: Annotated[str, typer.Option(metavar="FILE", help="The unified diff to judge; - reads it from stdin.")],
    program: _Program = None,
    module: _Module = None,
    steps: _Steps = None,
    timeout: _Timeout = None,
    max_cpu: _Cpu = None,
    max_memory: _Memory = None,
    max_processes: _Processes = None,
    max_scratch: _Scratch = None,
    max_output: _Output = None,
    python: _Python = None,
    device: _Device = None,
    isolation: _Isolation = None,
    allow_network: _Network = None,
    env: _Env = None,
    data: _Data = None,
    output_format: _Format = None,
    output_file: _File = None,
    verbose: _Verbose = 0,
    quiet: _Quiet = None,
) -> int:
    """Judge anybody's patch by the criteria that our own must pass; exit 0 only if it is safe."""
    settings = _settings(locals(), output_format="text", all=True)
    patch_text = _read(patch).decode("utf-8", "surrogateescape")
    from autodetach import pipeline

    outcome = _watched(settings, lambda progress: pipeline.verify(settings, patch_text, progress))
    tell(settings, outcome)
    publish(settings, outcome)
    if outcome.trials:
        return 0 if outcome.trials[0].level is Level.SAFE else 1
    return 3 if outcome.status is Status.CLEAN else _STATUS[outcome.status]


@app.command(epilog="Example: autodetach ci --jobs 2 --output-format github --write json=result.json")
def ci(
    jobs: Annotated[str | None, typer.Option(metavar="N", help="Programs to run at the same time. [1]")] = None,
    shard: Annotated[str | None, typer.Option(metavar="K/N", help="Only the K-th of N parts. [1/1]")] = None,
    write: Annotated[
        list[str] | None, typer.Option(metavar="FORMAT=FILE", help="Also write this format. Repeatable.")
    ] = None,
    timeout: _Timeout = None,
    max_cpu: _Cpu = None,
    max_memory: _Memory = None,
    max_processes: _Processes = None,
    max_scratch: _Scratch = None,
    max_output: _Output = None,
    python: _Python = None,
    device: _Device = None,
    isolation: _Isolation = None,
    allow_network: _Network = None,
    env: _Env = None,
    data: _Data = None,
    output_format: _Format = None,
    output_file: _File = None,
    verbose: _Verbose = 0,
    quiet: _Quiet = None,
) -> int:
    """Run the programs listed in pyproject.toml; exit 1 if any of them needs repair."""
    flags = locals() | {"verbose": verbose or None}
    listed = load_programs(flags, os.environ, _current_folder())
    programs = part_of(listed, listed[0].shard)
    results = _all_programs(programs, listed[0].jobs)
    outcomes = [one for one in results if isinstance(one, Outcome)]
    if outcomes:
        tell(programs[0], *outcomes)
        publish(programs[0], *outcomes)
    for name, file in listed[0].write:
        put(make(name).render(*outcomes), name, file)
    statuses = [_STATUS[one.status] if isinstance(one, Outcome) else one.status for one in results]
    return 1 if any(outcome.diagnosis for outcome in outcomes) else max(statuses, default=0)


@app.command(epilog="Example: autodetach suggest result.json --diff pr.diff | reviewdog -f=rdjsonl ...")
def suggest(
    result: Annotated[str, typer.Argument(metavar="RESULT.json", help="What ci or fix wrote as JSON.")],
    diff: Annotated[str, typer.Option(metavar="FILE", help="The pull request's diff.")],
    summary: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where what is no suggestion goes, as Markdown. [stderr]"),
    ] = None,
) -> int:
    """Turn a result into suggestions for a pull request (rdjsonl for reviewdog). Runs nothing."""
    from autodetach.report.suggest import advise

    advice = advise(_read(result), _read(diff))
    put(advice.rdjsonl, "rdjsonl", None)
    if summary is not None:
        put(advice.summary, "text", Path(summary))
    elif advice.summary and sys.stderr is not None:
        sys.stderr.write(advice.summary)
    return 0


def _all_programs(programs: Sequence[Settings], jobs: int) -> list[Outcome | AutodetachError]:
    """The outcome of each, in their order; one that cannot be run does not keep the others from running."""
    if jobs == 1 or len(programs) < 2:
        return [_told(settings, _one_program(settings)) for settings in programs]
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Processes, not threads: Ctrl-C reaches each of them, and each ends its own program.
    workers = min(jobs, len(programs))
    with ProcessPoolExecutor(workers, get_context("spawn"), signal.signal, _IGNORE_INTERRUPT) as pool:
        results = pool.map(_one_program_in_a_worker, programs)
        return [_told(*pair) for pair in zip(programs, results, strict=True)]


def _one_program_in_a_worker(settings: Settings) -> Outcome | AutodetachError:
    """As ``_one_program``, which alone an interrupt may end: an idle worker would die with a traceback."""
    if _stopped.is_set():
        raise KeyboardInterrupt
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return _one_program(settings)
    except KeyboardInterrupt:
        _stopped.set()
        raise
    finally:
        signal.signal(*_IGNORE_INTERRUPT)


def _told(settings: Settings, result: Outcome | AutodetachError) -> Outcome | AutodetachError:
    if isinstance(result, AutodetachError):
        _say(f"autodetach: {settings.program}: error[{result.slug}]: {_one_line(result)}")
    elif not settings.quiet:
        _say(f"autodetach: {settings.program}: {result.status}")
    return result


def _one_program(settings: Settings) -> Outcome | AutodetachError:
    from autodetach import pipeline

    try:
        outcome = pipeline.fix(settings, Silent())
    except AutodetachError as error:
        return error
    return replace(outcome, notes=(f"program: {settings.program}", *outcome.notes))


def _settings(arguments: dict[str, Any], **defaults: object) -> Settings:
    """A command's arguments, as its function got them, made into settings."""
    flags = {name: value for name, value in arguments.items() if name not in ("program", "patch")}
    words: list[str] = arguments["program"] or []
    script, args = (None, words) if flags["module"] else (next(iter(words), None), words[1:])
    flags |= {"script": script, "args": args, "verbose": flags["verbose"] or None}
    return load(flags, os.environ, _current_folder(), defaults)


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UsageError("the current folder no longer exists") from error


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error


def _watched(settings: Settings, work: Callable[[Progress], Outcome]) -> Outcome:
    progress = choose(sys.stderr, os.environ, settings.quiet, settings.verbose)
    try:
        return work(progress)
    finally:
        progress.done()


def _apply(outcome: Outcome, settings: Settings) -> None:
    from autodetach.runner.project import Project
    from autodetach.source.write import write_files

    root = Project.discover(settings.script, settings.module, settings.cwd).root
    files = sorted(outcome.patched)
    changed = [] if settings.allow_dirty else _uncommitted(files, root)
    if changed:
        raise RefusedError(f"uncommitted changes in {', '.join(changed)}: commit them, or give --allow-dirty")
    for warning in write_files(root, outcome.patched, {file: outcome.originals[file] for file in files}):
        _say(f"autodetach: warning: {warning}")
    if not settings.quiet:
        _say(f"autodetach: applied to {', '.join(files)}")


def _settle(settings: Settings) -> None:
    """An earlier ``--apply`` that was killed half way: this one finishes it, any other call says so."""
    from autodetach.runner.project import Project
    from autodetach.source.write import is_interrupted, recover

    root = Project.discover(settings.script, settings.module, settings.cwd).root
    if settings.apply:
        if finished := recover(root):
            _say(f"autodetach: finished an --apply that was interrupted: {', '.join(finished)}")
    elif is_interrupted(root):
        _say("autodetach: warning: an --apply was interrupted, some files are old and some new; --apply finishes it")


def _uncommitted(files: Sequence[str], root: Path) -> list[str]:
    """Those of ``files`` whose content git does not have; none outside a repository or without git."""
    command = ["git", "-c", "core.fsmonitor=false", "--literal-pathspecs", "status", "--porcelain", "-z"]
    try:
        status = subprocess.run([*command, "--", *files], cwd=root, capture_output=True, check=False)
    except OSError:
        return []
    entries = os.fsdecode(status.stdout).split("\0") if status.returncode == 0 else []
    return [entry[3:] for entry in entries if entry]


def _say(line: str) -> None:
    if sys.stderr is not None:
        print(neutral(line), file=sys.stderr, flush=True)


def run(arguments: Sequence[str]) -> int:
    """One call of the command line, to its exit status. Every error is one line on stderr."""
    try:
        return int(app(args=list(arguments), prog_name="autodetach", standalone_mode=False) or 0)
    except AutodetachError as error:
        _say(f"autodetach: error[{error.slug}]: {_one_line(error)}")
        return error.status
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except Exception as error:
        if hasattr(error, "format_message"):  # the parser's usage errors, whose class typer does not publish
            message = _one_line(error.format_message())
            hint = " (arguments of the program itself come after --)" if "No such option" in message else ""
            _say(f"autodetach: error[usage]: {message}{hint}")
            return UsageError.status
        if _wants_traceback(arguments):
            traceback.print_exc()
        _say(
            f"autodetach: error[internal]: {type(error).__name__}: {_one_line(error)}; this is our fault: "
            "please report it, with what the same command says with -vv"
        )
        return _OUR_FAULT


def _one_line(message: object) -> str:
    return " ".join(str(message).split())


def _wants_traceback(arguments: Sequence[str]) -> bool:
    ours = list(arguments)[: arguments.index("--")] if "--" in arguments else arguments
    return sum(len(word) - 1 for word in ours if word.strip("v") == "-") + list(ours).count("--verbose") >= 2


def main() -> None:
    sys.exit(run(sys.argv[1:]))
