"""Unified diffs: written so that ``git apply`` and ``patch -p1`` take them, and read strictly.

A diff is text. Bytes that are no UTF-8 (a latin-1 source) appear in it as surrogate escapes: encode it with
``errors="surrogateescape"`` and the patch has the very bytes of the files.
"""

from __future__ import annotations

import difflib
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

from autodetach.errors import RefusedError, UsageError

_NULL = "/dev/null"
_REFUSED = re.compile(
    r"^(GIT binary patch|Binary files? .* differ|(?:new|deleted) file mode|(?:old|new) mode"
    r"|rename (?:from|to)|copy (?:from|to))",
    re.MULTILINE,
)
_QUOTED = {"\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r"}
_QUOTED |= {'"': '\\"', "\\": "\\\\"}
_UNQUOTED = {quoted[1]: plain for plain, quoted in _QUOTED.items()}


def unified_diff(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    """The difference of the files that both sides have; names are relative to the root (POSIX)."""
    return "".join(
        part
        for name in sorted(before.keys() & after.keys())
        if before[name] != after[name]
        for part in _file_diff(name, _lines(before[name]), _lines(after[name]))
    )


def _file_diff(name: str, old: list[str], new: list[str]) -> Iterator[str]:
    yield f"--- {_quoted('a/' + name)}\n+++ {_quoted('b/' + name)}\n"
    for line in list(difflib.unified_diff(old, new))[2:]:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(data: bytes) -> list[str]:
    """Lines as git sees them: only a line feed ends one."""
    return _cut(data.decode("utf-8", "surrogateescape"))


def _cut(text: str) -> list[str]:
    return list(io.StringIO(text, newline="\n"))


def _quoted(name: str) -> str:
    """A name as git writes it: C-quoted if it is not plain ASCII, a tab behind it if it has blanks."""
    encoded = name.encode("utf-8", "surrogateescape")
    if all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in encoded):
        return f"{name}\t" if " " in name else name
    letters = (_QUOTED.get(chr(byte)) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in encoded)
    return f'"{"".join(letters)}"'


def _unquoted(name: str) -> str:
    if not (len(name) >= 2 and name.startswith('"') and name.endswith('"')):
        return name

    def plain(escape: re.Match[str]) -> str:
        return chr(int(escape[1], 8) & 0xFF) if escape[1] else _UNQUOTED.get(escape[2], escape[2])

    body = re.sub(r"\\(?:([0-7]{3})|(.))", plain, name[1:-1].encode("utf-8", "surrogateescape").decode("latin-1"))
    return body.encode("latin-1").decode("utf-8", "surrogateescape")


def read_patch(text: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Apply a unified diff in memory: the new bytes of each file it changes.

    ``files`` are the files that may be changed, by the names that a diff made here would use. Raises
    ``UsageError`` for a text that is no patch or does not fit exactly (no offsets, no fuzz), ``RefusedError``
    for one that leaves the project, creates, deletes, renames or copies files, changes modes, or is binary.
    """
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise UsageError(f"not a unified diff: {error}") from None
    refused = _REFUSED.search(_outside_hunks(text))
    if refused:
        raise RefusedError(f"the patch does more than change text files: {refused[0]}")
    try:
        patch = PatchSet(io.StringIO(text, newline="\n"))
    except UnidiffParseError as error:
        raise UsageError(f"not a unified diff: {error}") from None
    changed: dict[str, bytes] = {}
    for part in patch:
        name = _name_in(part, files)
        if name in changed:
            raise UsageError(f"the patch changes {name} twice")
        changed[name] = _patched(name, part, files[name])
    if not changed:
        raise UsageError("not a unified diff: it changes no file")
    return changed


def patched_names(text: str) -> tuple[str, ...]:
    """The files that a unified diff names as changed; empty for a text that is none."""
    try:
        patch = PatchSet(io.StringIO(text, newline="\n"))
    except UnidiffParseError:
        return ()
    names = (_unquoted(part.target_file or "").split("/") for part in patch)
    return tuple("/".join(parts[1:]) for parts in names if len(parts) > 1 and parts[0] and ".." not in parts)


def size_of(text: str) -> tuple[int, int]:
    """Changed lines of a unified diff (a replaced line counts once), and changed tokens, roughly: changed words."""
    try:
        patch = PatchSet(io.StringIO(text, newline="\n"))
    except UnidiffParseError:
        return 0, 0
    lines = sum(max(hunk.added, hunk.removed) for part in patch for hunk in part)
    words = sum(len(str(line.value).split()) for part in patch for hunk in part for line in hunk if line.is_added)
    return lines, words


def _outside_hunks(text: str) -> str:
    """The lines that are no content: those could look like anything."""
    kept, left = [], [0, 0]
    for line in _cut(text):
        header = re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line)
        if not any(left):
            kept.append(line)
            if header:
                left = [int(header[1] or 1), int(header[2] or 1)]
        elif line.startswith("\\"):
            continue
        else:
            left[0] -= not line.startswith("+")
            left[1] -= not line.startswith("-")
            left = [max(0, count) for count in left]
    return "".join(kept)


def _name_in(part: PatchedFile, files: Mapping[str, bytes]) -> str:
    source, target = _unquoted(part.source_file), _unquoted(part.target_file)
    if _NULL in (source, target):
        raise RefusedError(f"the patch creates or deletes {target if source == _NULL else source}")
    stripped = source.startswith("a/") and target.startswith("b/")
    names = {source[2:], target[2:]} if stripped else {source, target}
    if len(names) != 1:
        raise RefusedError(f"the patch renames {source} to {target}")
    name = names.pop()
    path = PurePath(name)
    if path.is_absolute() or path.anchor or ".." in path.parts:
        raise RefusedError(f"the patch reaches outside the project: {name}")
    if name not in files:
        raise RefusedError(f"the patch changes {name}, which is no file of the program")
    return name


def _patched(name: str, part: PatchedFile, data: bytes) -> bytes:
    old = _lines(data)
    new: list[str] = []
    done = 0
    for hunk in part:
        # A hunk without old lines stands behind the line it names.
        start = hunk.source_start - (1 if hunk.source_length else 0)
        taken, given = _sides(hunk)
        if start < done or old[start : start + len(taken)] != taken:
            raise UsageError(f"the patch does not fit {name} at line {hunk.source_start}")
        new += [*old[done:start], *given]
        done = start + len(taken)
    new += old[done:]
    return "".join(new).encode("utf-8", "surrogateescape")


def _sides(hunk: Hunk) -> tuple[list[str], list[str]]:
    """The lines that a hunk takes and those that it gives, each with its newline unless it has none."""
    taken: list[str] = []
    given: list[str] = []
    last: list[list[str]] = []
    for line in hunk:
        if line.line_type == "\\":
            for side in last:
                side[-1] = side[-1].removesuffix("\n")
            continue
        last = [side for side, skip in ((taken, "+"), (given, "-")) if line.line_type != skip]
        for side in last:
            side.append(line.value)
    return taken, given
