"""Flags, ``AUTODETACH_*`` variables and ``[tool.autodetach]`` become one frozen ``Settings``.

Each field of ``Settings`` carries its own reader, so a new setting is one new line: it can be given in all
three places, is refused in the same words everywhere when its value is wrong, and is suggested when a name is
misspelled.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from autodetach.errors import UsageError

FORMATS = ("diff", "text", "json", "rdjsonl", "sarif", "github", "gitlab")
ISOLATIONS = ("auto", "bubblewrap", "landlock", "none", "require")
SPEEDUPS = ("server", "imports", "dynamo", "early", "sure", "pairs")
PREFIX = "AUTODETACH_"


@dataclass(frozen=True)
class Kind:
    """How one sort of value is read: ``wants`` names it for a human, ``read`` returns None for a wrong value.

    ``split`` turns the text of a flag or variable into what TOML would give. Paths are joined to ``base``.
    """

    wants: str
    read: Callable[[object, Path], Any]
    split: Callable[[str], object] = str


def _flag(value: object, base: Path) -> bool | None:
    return value if isinstance(value, bool) else None


def _flag_from_text(text: str) -> object:
    words = {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }
    return words.get(text.lower(), text)


def _number_from_text(text: str) -> object:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _whole(least: int) -> Kind:
    def read(value: object, base: Path) -> int | None:
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= least else None

    return Kind(f"a whole number of at least {least}", read, _number_from_text)


def _seconds(value: object, base: Path) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 < value < float("inf") else None  # type: ignore[arg-type, operator]


def _bytes(value: object, base: Path) -> int | None:
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")) or None if found else None


def _choice(*choices: str) -> Kind:
    return Kind("one of " + ", ".join(choices), lambda value, base: value if value in choices else None)


def _device(value: object, base: Path) -> str | None:
    return value if isinstance(value, str) and re.fullmatch(r"auto|cpu|cuda(:\d+)?", value) else None


def _shard(value: object, base: Path) -> tuple[int, int] | None:
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", value) if isinstance(value, str) else None
    number, count = (int(found[1]), int(found[2])) if found else (0, 0)
    return (number, count) if 1 <= number <= count else None


def _format_and_file(value: object, base: Path) -> tuple[str, Path] | None:
    name, _, file = value.partition("=") if isinstance(value, str) else ("", "", "")
    return (name, base / Path(file).expanduser()) if name in FORMATS and file else None


def _name(value: object, base: Path) -> str | None:
    return value if isinstance(value, str) and value else None


def _path(value: object, base: Path) -> Path | None:
    # Not resolved: a virtual environment's python is a symlink that must stay one.
    return base / Path(value).expanduser() if isinstance(value, str) and value else None


def _all(one: Callable[[object, Path], Any]) -> Callable[[object, Path], Any]:
    def read(value: object, base: Path) -> tuple[Any, ...] | None:
        if not isinstance(value, list | tuple):
            return None
        items = tuple(one(item, base) for item in value)
        return None if None in items else items

    return read


_FLAG = Kind("true or false", _flag, _flag_from_text)
_SECONDS = Kind("a number of seconds above 0", _seconds, _number_from_text)
_SIZE = Kind("a size in bytes above 0, such as 512M or 8G", _bytes)
_PATH = Kind("a path", _path)
_STRINGS = Kind("a list of strings", _all(lambda value, base: value if isinstance(value, str) else None), shlex.split)
_NAMES = Kind("a list of names", _all(_name), shlex.split)
_SPEEDUPS = Kind(
    "a list of " + ", ".join(SPEEDUPS), _all(lambda value, base: value if value in SPEEDUPS else None), shlex.split
)


def _read_by(kind: Kind, program_only: bool = False, common_only: bool = False) -> dict[str, object]:
    return {"kind": kind, "program_only": program_only, "common_only": common_only}


@dataclass(frozen=True)
class Settings:
    """All that one run of a command may be told. Paths are absolute once ``load`` has made them."""

    script: Path | None = field(default=None, metadata=_read_by(_PATH, program_only=True))
    module: str | None = field(default=None, metadata=_read_by(Kind("the name of a module", _name), program_only=True))
    args: tuple[str, ...] = field(default=(), metadata=_read_by(_STRINGS, program_only=True))
    cwd: Path = field(default_factory=Path.cwd)
    """The folder the program is started in; paths in diffs are relative to it."""
    python: Path | None = field(default=None, metadata=_read_by(_PATH))
    steps: int = field(default=12, metadata=_read_by(_whole(3)))
    """Optimizer steps that a patch must survive beyond the failure."""
    timeout: float = field(default=300.0, metadata=_read_by(_SECONDS))
    """Seconds that a single run of the program may take."""
    max_cpu: float | None = field(default=None, metadata=_read_by(_SECONDS))
    """CPU seconds of a run, all its processes together; None: what ``timeout`` leaves room for."""
    max_memory: int | None = field(default=None, metadata=_read_by(_SIZE))
    """Bytes of resident memory of a run, all its processes together; None: most of what the machine has."""
    max_processes: int = field(default=512, metadata=_read_by(_whole(1)))
    max_scratch: int = field(default=8 << 30, metadata=_read_by(_SIZE))
    """Bytes that a run may write to disk."""
    max_output: int = field(default=256 << 10, metadata=_read_by(_SIZE))
    """Bytes kept of each of stdout and stderr."""
    isolation: str = field(default="auto", metadata=_read_by(_choice(*ISOLATIONS)))
    allow_network: bool = field(default=False, metadata=_read_by(_FLAG))
    env: tuple[str, ...] = field(default=(), metadata=_read_by(_NAMES))
    """Names of environment variables that are let through to the program although they look like secrets."""
    data: tuple[Path, ...] = field(default=(), metadata=_read_by(Kind("a list of paths", _all(_path), shlex.split)))
    """Files and folders outside the project that the program may read although the isolation would hide them."""
    device: str = field(default="auto", metadata=_read_by(Kind("auto, cpu, cuda or cuda:N", _device)))
    leaks: bool = field(default=False, metadata=_read_by(_FLAG))
    unsafe: bool = field(default=False, metadata=_read_by(_FLAG))
    all: bool = field(default=False, metadata=_read_by(_FLAG))
    interactive: bool = field(default=False, metadata=_read_by(_FLAG))
    apply: bool = field(default=False, metadata=_read_by(_FLAG))
    allow_dirty: bool = field(default=False, metadata=_read_by(_FLAG))
    check: bool = field(default=False, metadata=_read_by(_FLAG))
    output_format: str = field(default="diff", metadata=_read_by(_choice(*FORMATS)))
    output_file: Path | None = field(default=None, metadata=_read_by(_PATH))
    jobs: int = field(default=1, metadata=_read_by(_whole(1), common_only=True))
    """For several programs: how many run at the same time."""
    shard: tuple[int, int] = field(
        default=(1, 1), metadata=_read_by(Kind("K/N, such as 2/8", _shard), common_only=True)
    )
    """For several programs: only the K-th of N parts."""
    write: tuple[tuple[str, Path], ...] = field(
        default=(),
        metadata=_read_by(
            Kind(f"FORMAT=FILE with a format of {', '.join(FORMATS)}", _all(_format_and_file), shlex.split),
            common_only=True,
        ),
    )
    """For several programs: more formats, each with its file."""
    verbose: int = field(default=0, metadata=_read_by(_whole(0)))
    quiet: bool = field(default=False, metadata=_read_by(_FLAG))
    without: tuple[str, ...] = field(default=(), metadata=_read_by(_SPEEDUPS))
    """Ways of being faster that are left out: to measure them, and to see that they change nothing else."""

    @property
    def program(self) -> str:
        """The program as its user would call it."""
        if self.module:
            return f"-m {self.module}"
        if self.script is None:
            return "the program"
        return os.path.relpath(self.script, self.cwd) if self.script.is_relative_to(self.cwd) else str(self.script)


_KINDS: dict[str, Kind] = {f.name: f.metadata["kind"] for f in fields(Settings) if "kind" in f.metadata}
_PROGRAM_ONLY = frozenset(f.name for f in fields(Settings) if f.metadata.get("program_only"))
_COMMON_ONLY = frozenset(f.name for f in fields(Settings) if f.metadata.get("common_only"))


def load(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    cwd: Path,
    defaults: Mapping[str, object] | None = None,
) -> Settings:
    """The settings of one program: ``flags`` (None: not given) before variables before the project's file.

    ``defaults`` are a command's own, and the weakest of all. Raises UsageError in one line for unknown names
    and wrong values, and where it is not told what to run.
    """
    common, _, _ = _from_project(cwd)
    return _checked({"cwd": cwd, **(defaults or {}), **common}, _stronger(flags, environ, cwd))


def load_programs(flags: Mapping[str, object], environ: Mapping[str, str], cwd: Path) -> tuple[Settings, ...]:
    """One ``Settings`` for each ``[[tool.autodetach.programs]]``, started in the pyproject.toml's folder.

    What a program's own table says is nearer than ``[tool.autodetach]``, and weaker than variables and flags.
    """
    common, programs, folder = _from_project(cwd)
    if folder is None or not programs:
        raise UsageError("no programs are listed: add [[tool.autodetach.programs]] to pyproject.toml")
    stronger = _stronger(flags, environ, cwd)
    return tuple(_checked({"cwd": folder, **common, **own}, stronger) for own in programs)


def part_of(programs: Sequence[Settings], part: tuple[int, int]) -> tuple[Settings, ...]:
    """Part K of N of the programs: every N-th from the K-th on, so that parts differ by one at most."""
    number, count = part
    return tuple(programs[number - 1 :: count])


def _checked(weaker: dict[str, Any], stronger: dict[str, Any]) -> Settings:
    settings = Settings(**weaker | stronger)
    if (settings.script is None) == (settings.module is None):
        raise UsageError("name the program to repair: a SCRIPT or -m MODULE, one of the two")
    if settings.interactive:  # a choice needs all that can be chosen
        settings = replace(settings, all=True)
    if settings.apply and settings.check:
        raise UsageError("--check and --apply exclude each other")
    return settings


def _stronger(flags: Mapping[str, object], environ: Mapping[str, str], cwd: Path) -> dict[str, Any]:
    """What variables say, and over it what the command line says."""
    given = {name: value for name, value in flags.items() if value is not None}
    command_line = {name: _read(name, value, cwd, f"--{_dashed(name)}") for name, value in given.items()}
    return _from_environment(environ, cwd) | command_line


def _from_environment(environ: Mapping[str, str], cwd: Path) -> dict[str, Any]:
    known = {PREFIX + name.upper(): name for name in _KINDS if name not in _PROGRAM_ONLY}
    for variable in environ:
        # Other AUTODETACH_ variables may be somebody's own; only what looks like a misspelling is refused.
        if variable.startswith(PREFIX) and variable not in known and (near := _nearest(variable, list(known))):
            raise UsageError(f"{variable} is no setting; did you mean {near}?")
    return {
        name: _read(name, environ[variable], cwd, variable) for variable, name in known.items() if environ.get(variable)
    }


def _from_project(cwd: Path) -> tuple[dict[str, Any], list[dict[str, Any]], Path | None]:
    """``[tool.autodetach]`` of the nearest pyproject.toml that has one: common values, programs, folder."""
    for folder in (cwd, *cwd.parents):
        file = folder / "pyproject.toml"
        table = _table(file) if file.is_file() else None
        if table is None:
            continue
        programs = table.pop("programs", [])
        if not isinstance(programs, list) or not all(isinstance(one, dict) for one in programs):
            raise UsageError(f"{file}: tool.autodetach.programs must be a list of tables, [[tool.autodetach.programs]]")
        shared = [name for name in _KINDS if name not in _PROGRAM_ONLY]
        of_one = [name for name in _KINDS if name not in _COMMON_ONLY]
        own = [dict(_from_table(one, of_one, folder, file, "tool.autodetach.programs")) for one in programs]
        return dict(_from_table(table, shared, folder, file, "tool.autodetach", "programs")), own, folder
    return {}, [], None


def _table(file: Path) -> dict[str, Any] | None:
    try:
        tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error
    table = tool.get("autodetach") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"{file}: tool.autodetach must be a table")
    return table


def _from_table(
    table: Mapping[str, object], allowed: list[str], folder: Path, file: Path, where: str, *extra: str
) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in allowed:
            if name in _PROGRAM_ONLY:
                raise UsageError(f"{file}: {key} belongs into [[tool.autodetach.programs]], not into [{where}]")
            if name in _COMMON_ONLY:
                raise UsageError(f"{file}: {key} belongs into [tool.autodetach], not into [[{where}]]")
            near = _nearest(key, [_dashed(one) for one in allowed] + list(extra))
            raise UsageError(
                f"{file}: unknown key {key!r} in [{where}]" + (f"; did you mean {near!r}?" if near else "")
            )
        yield name, _read(name, value, folder, f"{file}: {where}.{key}", typed=True)


def _read(name: str, value: object, base: Path, where: str, typed: bool = False) -> Any:
    """``value`` as the setting wants it; a string is text to be split, unless its source is ``typed``."""
    kind = _KINDS[name]
    try:
        plain = kind.split(value) if isinstance(value, str) and not typed else value
    except ValueError as error:
        raise UsageError(f"{where}: {value!r} cannot be split into words: {error}") from error
    result = kind.read(plain, base)
    if result is None:
        raise UsageError(f"{where} must be {kind.wants}, not {value!r}")
    return result


def _nearest(word: str, known: Sequence[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word, known, n=1)), None)


def _dashed(name: str) -> str:
    return name.replace("_", "-")
