#!/usr/bin/env python3
"""Two repairs that people try first, behind the command line of `autodetach fix`.

    baselines.py retain-graph ENTRY [-- ARGS...]   do what the error message says
    baselines.py anomaly ENTRY [-- ARGS...]        detach what anomaly mode points at

Both run the program once in a copy and print a unified diff on stdout. Exit 0 with a patch, 1 without one
(the reason is on stderr).
"""

from __future__ import annotations

import argparse
import ast
import difflib
import re
import shutil
import sys
import tempfile
from pathlib import Path

from score import quiet_environment, sh

RUN_LIMIT = 60.0
"""Seconds for the one run; a program whose parent waits for a dead worker is stopped then."""

ADVICE = "Specify retain_graph=True"
BLAMED = "Traceback of forward call that caused the error"

UNDER_ANOMALY = """
import runpy, sys, os, torch
torch.autograd.set_detect_anomaly(True)
sys.argv = sys.argv[1:]
path = os.path.abspath(sys.argv[0])
sys.path[0] = os.path.dirname(path)
runpy.run_path(path, run_name="__main__")  # absolute, as tracebacks of a plain run have it
"""

Place = tuple[str, int]


class NoSuggestion(Exception):
    """The baseline has nothing to offer for this program."""


def run_copy(entry: str, args: list[str], anomaly: bool) -> tuple[str, str]:
    """Run the program in a copy of the current folder; returns its standard error and the copy's path."""
    with tempfile.TemporaryDirectory() as tmp:
        copy = Path(tmp).resolve() / "copy"
        shutil.copytree(Path.cwd(), copy)
        start = ["-c", UNDER_ANOMALY] if anomaly else []
        return sh([sys.executable, *start, entry, *args], copy, RUN_LIMIT).err, str(copy)


def user_frames(text: str, copy: str) -> list[Place]:
    """The program's own frames in a piece of traceback, outermost first."""
    return [(m[1], int(m[2])) for m in re.finditer(rf'File "{re.escape(copy)}/([^"]+)", line (\d+)', text)]


class Source:
    """A file of the program, edited by positions as ``ast`` gives them; newlines stay as they are."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines = Path(name).read_bytes().decode("utf-8").splitlines(keepends=True)
        self.before = list(self.lines)
        self.tree = ast.parse("".join(self.lines))

    def insert(self, line: int, column: int, text: str) -> None:
        """Put text before the byte ``column`` of ``line`` (from 1)."""
        raw = self.lines[line - 1].encode()
        self.lines[line - 1] = (raw[:column] + text.encode() + raw[column:]).decode()

    def diff(self) -> str:
        """The change as `git apply` takes it; a tab ends a file name with a space in it."""
        end = "\t" if " " in self.name else ""
        names = (f"a/{self.name}{end}", f"b/{self.name}{end}")
        return "".join(difflib.unified_diff(self.before, self.lines, *names))


def backward_call(source: Source, line: int) -> ast.Call | None:
    """The backward (or autograd.grad) call that stands on the line."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or node.lineno):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("backward", "grad"):
                return node
    return None


def failing_call(stderr: str, copy: str) -> tuple[Source, ast.Call]:
    """The innermost backward call of the program in its last traceback."""
    last = stderr[stderr.rfind("Traceback (most recent call last)") :]
    for name, line in reversed(user_frames(last, copy)):
        source = Source(name)
        call = backward_call(source, line)
        if call is not None:
            return source, call
    raise NoSuggestion("no backward call of the program in the traceback")


def retain_graph(entry: str, args: list[str]) -> str:
    """``retain_graph=True`` on the backward call that failed, where the message advises it."""
    stderr, copy = run_copy(entry, args, anomaly=False)
    if ADVICE not in stderr:
        raise NoSuggestion("the error does not speak of retain_graph")
    source, call = failing_call(stderr, copy)
    if any(keyword.arg == "retain_graph" for keyword in call.keywords):
        raise NoSuggestion("the graph is retained already")
    assert call.end_lineno is not None and call.end_col_offset is not None
    comma = ", " if call.args or call.keywords else ""
    source.insert(call.end_lineno, call.end_col_offset - 1, f"{comma}retain_graph=True")
    return source.diff()


def detach_value(source: Source, line: int) -> str:
    """Append ``.detach()`` to the value that the statement on the line assigns or returns."""
    kinds = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)
    found = [n for n in ast.walk(source.tree) if isinstance(n, kinds) and n.lineno <= line]
    found = [n for n in found if line <= (n.end_lineno or n.lineno)]
    value = found[0].value if found else None
    if value is None:
        raise NoSuggestion(f"line {line} of {source.name} assigns nothing")
    assert value.end_lineno is not None and value.end_col_offset is not None
    if isinstance(value, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        source.insert(value.end_lineno, value.end_col_offset, ".detach()")
    else:
        source.insert(value.end_lineno, value.end_col_offset, ").detach()")
        source.insert(value.lineno, value.col_offset, "(")
    return source.diff()


def first_operand_line(source: Source, call: ast.Call) -> int:
    """The line that assigns the first operand of the loss which is assigned in this file at all."""
    roots = [n.id for n in ast.walk(call) if isinstance(n, ast.Name)]
    stored: dict[str, list[ast.Assign]] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign):
            for name in (n for target in node.targets for n in ast.walk(target)):
                if isinstance(name, ast.Name):
                    stored.setdefault(name.id, []).append(node)
    for root in roots:
        for loss in stored.get(root, []):
            names = sorted(
                (n for n in ast.walk(loss.value) if isinstance(n, ast.Name)),
                key=lambda n: (n.lineno, n.col_offset),
            )
            for name in names:
                if name.id != root and name.id in stored:
                    return stored[name.id][-1].lineno
    raise NoSuggestion("no operand of the loss is assigned in its file")


def anomaly(entry: str, args: list[str]) -> str:
    """``.detach()`` on the line that anomaly mode names; without one, on the loss's first operand."""
    stderr, copy = run_copy(entry, args, anomaly=True)
    if BLAMED in stderr:
        forward = stderr[stderr.rfind(BLAMED) :]
        frames = user_frames(forward[: forward.find("Traceback (most recent call last)")], copy)
        if frames:
            name, line = frames[-1]
            return detach_value(Source(name), line)
    source, call = failing_call(stderr, copy)
    return detach_value(source, first_operand_line(source, call))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("baseline", choices=["retain-graph", "anomaly"])
    parser.add_argument("entry")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    a = parser.parse_args()
    args = a.args[1:] if a.args[:1] == ["--"] else a.args
    try:
        diff = (retain_graph if a.baseline == "retain-graph" else anomaly)(a.entry, args)
    except NoSuggestion as nothing:
        print(nothing, file=sys.stderr)
        return 1
    sys.stdout.buffer.write(diff.encode("utf-8"))
    return 0 if diff else 1


if __name__ == "__main__":
    quiet_environment()
    sys.exit(main())
