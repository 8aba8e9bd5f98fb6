"""A unified diff as stretches of whole lines, the only thing that review comments can replace."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

from autodetach.source.diff import _unquoted as unquoted


@dataclass(frozen=True)
class Block:
    """Lines ``line`` to ``last`` (from 1) of ``file`` are ``old`` and become ``new``; no line has its end.

    ``old`` is never empty: where a patch only inserts, the line before (or else after) it is replaced by
    itself and the new ones.
    """

    file: str
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def last(self) -> int:
        return self.line + len(self.old) - 1

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def read(diff: str) -> PatchSet:
    """The diff, parsed. Raises ValueError where it is none."""
    try:
        return PatchSet(io.StringIO(diff, newline="\n"))
    except (UnidiffParseError, ValueError, IndexError) as error:
        raise ValueError(f"not a unified diff: {error}") from error


def blocks(diff: str) -> list[Block]:
    """The diff's changes in its order. Raises ValueError for what is no diff or has nothing to hold on to."""
    return [block for file in read(diff) for hunk in file for block in _of_hunk(_name(file), hunk)]


def target_lines(diff: str) -> dict[str, dict[int, tuple[int, str]]]:
    """For each file, the lines that the diff shows of its new side: number, to hunk and text."""
    return {
        _name(file): {
            line.target_line_no: (index, _text(line.value))
            for index, hunk in enumerate(file)
            for line in hunk
            if line.target_line_no is not None
        }
        for file in read(diff)
    }


def _name(file: PatchedFile) -> str:
    return unquoted(file.target_file).removeprefix("b/")


def _of_hunk(file: str, hunk: Hunk) -> Iterator[Block]:
    lines = [line for line in hunk if line.line_type in " +-"]
    groups = [(kind, list(group)) for kind, group in groupby(lines, lambda line: line.line_type == " ")]
    for index, (is_context, group) in enumerate(groups):
        if is_context:
            continue
        old = [line for line in group if line.line_type == "-"]
        texts = [_text(line.value) for line in group if line.line_type == "+"]
        if old:
            yield Block(file, _number(old[0]), tuple(_text(line.value) for line in old), tuple(texts))
        elif index > 0:
            anchor = groups[index - 1][1][-1]
            yield Block(file, _number(anchor), (_text(anchor.value),), (_text(anchor.value), *texts))
        elif len(groups) > 1:
            anchor = groups[1][1][0]
            yield Block(file, _number(anchor), (_text(anchor.value),), (*texts, _text(anchor.value)))
        else:
            raise ValueError(f"{file}: an insertion without a line beside it")


def _number(line: object) -> int:
    return int(line.source_line_no)  # type: ignore[attr-defined]


def _text(value: str) -> str:
    return value.removesuffix("\n").removesuffix("\r")
