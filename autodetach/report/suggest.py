"""Suggestions for a pull request, made from the JSON of a run that may have been the pull request's own code.

That JSON is hostile: it is bounded, read field by field, and never trusted. A suggestion is made only where
the pull request's diff itself shows the very lines that would be replaced; free text is quoted as code, so
that it can neither mention nor link nor format; everything else that is printed comes from our own tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from autodetach.errors import UsageError
from autodetach.model import Cause, FailureKind, Level
from autodetach.report.blocks import Block, blocks, target_lines
from autodetach.report.faults import as_json
from autodetach.report.json import VERSION
from autodetach.report.plain import neutral
from autodetach.report.rdjsonl import suggestions
from autodetach.report.words import CAUSES, FAILURES

_Word = TypeVar("_Word", Cause, FailureKind, Level)

MOST_BYTES = 20_000_000
_MOST_OUTCOMES = 200
_MOST_QUOTED = 300
_MOST_PATCH = 30_000
"""Characters of a patch in the summary; GitHub takes 65,536 in a comment."""


@dataclass(frozen=True)
class Advice:
    rdjsonl: str
    summary: str
    """Markdown; empty where every patch became suggestions and nothing else is to be said."""


@dataclass(frozen=True)
class _Fault:
    """One outcome of the JSON, as far as it is used."""

    cause: Cause
    kind: FailureKind
    level: Level | None
    summary: str
    diff: str

    @property
    def title(self) -> str:
        return f"{FAILURES[self.kind]} ({self.cause}). {CAUSES[self.cause]}"


def advise(result: bytes, pull_request: bytes) -> Advice:
    """Raises UsageError where either is not what it should be."""
    shown = _shown_by(pull_request)
    diagnostics: dict[str, None] = {}
    sections: dict[str, None] = {}
    for fault in _faults(result):
        found = _blocks(fault)
        if found and fault.level is Level.SAFE and all(_is_shown(block, shown) for block in found):
            message = f"{fault.title} Remedy: {_code(fault.summary)}."
            diagnostics |= {as_json(one, indent=None): None for one in suggestions(found, message, fault.cause, [])}
        else:
            sections[_section(fault, bool(found))] = None
    return Advice("".join(diagnostics), "\n".join(["## autodetach\n", *sections]) if sections else "")


def _shown_by(pull_request: bytes) -> dict[str, dict[int, tuple[int, str]]]:
    try:
        return target_lines(pull_request.decode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise UsageError(f"the pull request's diff: {error}") from error


def _is_shown(block: Block, shown: dict[str, dict[int, tuple[int, str]]]) -> bool:
    """Whether one hunk of the pull request shows these very lines: only there can a comment stand."""
    lines = shown.get(block.file, {})
    found = [lines.get(number) for number in range(block.line, block.last + 1)]
    hunks = {one[0] for one in found if one}
    return len(hunks) == 1 and [one and one[1] for one in found] == list(block.old)


def _faults(result: bytes) -> Iterator[_Fault]:
    if len(result) > MOST_BYTES:
        raise UsageError("the result is too large")
    try:
        document = json.loads(result)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the result is no JSON: {error}") from error
    if _get(document, "version") != VERSION:
        raise UsageError(f"the result is not autodetach's JSON of version {VERSION}")
    outcomes = _get(document, "outcomes")
    for outcome in outcomes[:_MOST_OUTCOMES] if isinstance(outcomes, list) else []:
        cause = _word(Cause, _get(outcome, "diagnosis", "cause"))
        kind = _word(FailureKind, _get(outcome, "diagnosis", "failure", "kind"))
        if cause and kind:
            level = _word(Level, _get(outcome, "patch", "level"))
            summary, diff = _get(outcome, "patch", "summary"), _get(outcome, "patch", "diff")
            yield _Fault(cause, kind, level, _string(summary), _string(diff))


def _get(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _word(kind: type[_Word], value: object) -> _Word | None:
    return next((one for one in kind if one == value), None)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _blocks(fault: _Fault) -> list[Block]:
    try:
        return blocks(fault.diff)
    except ValueError:
        return []


def _section(fault: _Fault, has_patch: bool) -> str:
    """One fault that has no suggestion, with its patch in a fence that it cannot close."""
    if not has_patch:
        return f"**{fault.title}** No patch is verified.\n"
    head = f"**{fault.title}**\n\nRemedy ({fault.level or 'no level'}): {_code(fault.summary)}. "
    if len(fault.diff) > _MOST_PATCH:
        return f"{head}The patch is too long to be shown here.\n"
    fence = "`" * max(4, 1 + _longest(re.findall("`+", fault.diff)))
    patch = neutral(fault.diff.rstrip("\n"), keep="\t\n")
    return f"{head}It reaches beyond the lines of this pull request:\n\n{fence}diff\n{patch}\n{fence}\n"


def _longest(runs: Iterable[str]) -> int:
    return max(map(len, runs), default=0)


def _code(text: str) -> str:
    """Free text as inline code, in one line: nothing in it is markup, a mention or a link."""
    line = " ".join(neutral(text, keep="\t\n").split()).replace("`", "'")
    return f"`{line[:_MOST_QUOTED]}`" if line else "`(unnamed)`"
