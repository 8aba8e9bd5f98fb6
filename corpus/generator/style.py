"""How the same program is typed: comments, hints, breaks of lines, blanks. Works on text that still has its marks."""

from __future__ import annotations

import random
import re

from .axes import Axes
from .layout import Program

_COMMENTS = (
    (r"\.zero_grad\(\)$", ("# one update", "# clear old gradients")),
    (r"^\s*for .* in .*:$", ("# go through the data in order",)),
    (r"torch\.manual_seed", ("# reproducible",)),
    (r"= \w*[Oo]pt|torch\.optim\.", ("# small steps: the data is noisy", "# tuned by hand")),
    (r"^class ", ("# the whole network",)),
    (r"\.backward\(\)", ("# NOTE: gradients of this batch only",)),
)
_TRAILING = (
    (r"\.append\(|\] = ", "  # kept for the next step"),
    (r"\bloss\b.* = ", "  # mean over the batch"),
    (r"\.step\(\)", "  # update"),
)


def typeset(program: Program, axes: Axes) -> Program:
    """The program with the text styles of its axes, marks kept."""
    files = {}
    for path, text in program.files.items():
        rng = axes.rng(f"style/{path}")
        if "walrus" in axes.styles:
            text = _walrus(text)
        if "semicolons" in axes.styles:
            text = _semicolons(text)
        if "multiline" in axes.styles:
            text = _multiline(text, rng)
        if "backslash" in axes.styles:
            text = _backslash(text)
        if "comments" in axes.styles:
            text = _comments(text, rng)
        files[path] = text
    return Program(files, program.entry, program.args)


def to_bytes(text: str, axes: Axes) -> bytes:
    """The text of one finished file as it lies on disk."""
    if "tabs" in axes.styles:
        text = _reindented(text, "\t")
    elif "two-space" in axes.styles:
        text = _reindented(text, "  ")
    if "no-final-newline" in axes.styles:
        text = text.rstrip("\n")
    if "crlf" in axes.styles:
        text = text.replace("\n", "\r\n")
    return (b"\xef\xbb\xbf" if "bom" in axes.styles and text else b"") + text.encode("utf-8")


def _reindented(text: str, unit: str) -> str:
    return re.sub(r"^(?: {4})+", lambda found: unit * (len(found[0]) // 4), text, flags=re.MULTILINE)


def _walrus(text: str) -> str:
    """``loss = …`` directly before ``loss.backward()`` becomes one line."""
    pattern = re.compile(r"^( *)([\w.]+) = ([^\n⟦⟧]+)\n\1\2\.backward\(\)$", re.MULTILINE)
    return pattern.sub(lambda m: m[0] if "." in m[2] else f"{m[1]}({m[2]} := {m[3]}).backward()", text)


def _semicolons(text: str) -> str:
    """Short statements of the update on one line."""
    pattern = re.compile(r"^( *)([\w.]+\.zero_grad\(\))\n\1([\w.]+\.backward\(\))$", re.MULTILINE)
    text = pattern.sub(r"\1\2; \3", text)
    pattern = re.compile(r"^( *)([\w.]+\.backward\(\))\n\1([\w.]+\.step\(\))$", re.MULTILINE)
    return pattern.sub(r"\1\2; \3", text)


def _pieces(inside: str) -> list[str]:
    """Arguments, parted at the commas that are in no bracket and in no mark."""
    pieces, depth, start = [], 0, 0
    for i, letter in enumerate(inside):
        depth += (letter in "([{⟦") - (letter in ")]}⟧")
        if letter == "," and depth == 0:
            pieces.append(inside[start:i].strip())
            start = i + 1
    return [piece for piece in [*pieces, inside[start:].strip()] if piece]


def _multiline(text: str, rng: random.Random) -> str:
    """Break assignments of a call, one argument a line."""
    lines = []
    for line in text.split("\n"):
        found = re.fullmatch(r"( +)([^=()⟦]+ = [\w.]+)\((.*)\)", line)
        pieces = _pieces(found[3]) if found else []
        if found is None or len(pieces) < 2 or not _balanced(found[3]) or len(line) < 45 or rng.random() < 0.2:
            lines.append(line)
            continue
        blank, head = found[1], found[2]
        lines += [f"{blank}{head}(", *(f"{blank}    {piece}," for piece in pieces), f"{blank})"]
    return "\n".join(lines)


def _balanced(inside: str) -> bool:
    depth = 0
    for letter in inside:
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            return False
    return depth == 0


def _backslash(text: str) -> str:
    """A sum continued on the next line by a backslash."""
    return re.sub(
        r"^( +)([^\s⟦]+ = [^\n⟦()]*(?:\([^\n()⟦]*\))?) \+ ([^\n]+)$", r"\1\2 \\\n\1    + \3", text, flags=re.MULTILINE
    )


def _comments(text: str, rng: random.Random) -> str:
    lines = []
    for line in text.split("\n"):
        blank = line[: len(line) - len(line.lstrip())]
        plain = "⟦" not in line and not line.endswith(("\\", "(", ","))
        for pattern, said in _COMMENTS:
            if plain and re.search(pattern, line) and rng.random() < 0.4:
                lines.append(blank + rng.choice(said))
                break
        for pattern, trailing in _TRAILING:
            if not line.endswith(("\\", "(", ",", ":", "⟧")) and re.search(pattern, line) and rng.random() < 0.5:
                line += trailing
                break
        lines.append(line)
    return "\n".join(lines)
