#!/usr/bin/env python3
"""Rewrite cases for CUDA, so that a tool can be scored on them: before/, after*/ and wrong-*/ alike.

    for_cuda.py [--style method|device] OUT [CASES_DIR]... [--slug SLUG]...

``method``: ``net = Net().cuda()``, ``torch.zeros(3).cuda()``; ``device``: ``device = torch.device("cuda")`` after the
imports, ``Net().to(device)``, ``torch.zeros(3, device=device)``. Nothing else of a file changes, and what was inserted
can be taken out again (``undo``): on a machine without CUDA the referee judges the programs as they were before, so it
needs no stand-in for CUDA of anybody's making. Cases that cannot be rewritten are named and left out.
"""

from __future__ import annotations

import argparse
import ast
import io
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import case as cases
from case import Case

STYLES = ("method", "device")
DECLARATION = b'device = torch.device("cuda")'
INSERTED = (b".cuda()", b".to(device)", b".cpu()", b', device="cuda"', b'device="cuda"', b", device=device",
            b"device=device")  # fmt: skip
"""All that is ever inserted into a line; the longer before what is a part of it."""
FACTORIES = frozenset(
    "arange as_tensor empty eye full hann_window linspace ones rand randint randn randperm tensor zeros".split()  # noqa: SIM905
)
WITHOUT_KEYWORD = frozenset({"from_numpy", "normal"})
"""Factories that take no ``device``; ``normal`` does where it is told a size."""
TAKE_GENERATORS = frozenset({"DataLoader", "RandomSampler", "WeightedRandomSampler", "random_split"})
"""Callers that want their generator on the CPU."""


@dataclass(frozen=True, order=True)
class _Insertion:
    offset: int
    order: int
    text: bytes


class _File:
    """One source file: where its calls stand, and what is to be inserted."""

    def __init__(self, data: bytes, style: str, modules: frozenset[str]) -> None:
        self.data, self.style, self.modules = data, style, modules
        self.tree = ast.parse(data)
        self.starts = [0]
        for line in data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.insertions: list[_Insertion] = []
        self.names_torch = any(
            isinstance(node, ast.Import) and any(one.name == "torch" and not one.asname for one in node.names)
            for node in self.tree.body
        )
        self.generators_on_cpu = any(
            isinstance(node, ast.Call)
            and _last_name(node.func) in TAKE_GENERATORS
            and any(keyword.arg == "generator" for keyword in node.keywords)
            for node in ast.walk(self.tree)
        )

    def rewritten(self) -> bytes:
        self._visit(self.tree, in_module=False)
        result, last = bytearray(), 0
        for one in sorted(self.insertions):
            result += self.data[last : one.offset] + one.text
            last = one.offset
        result += self.data[last:]
        return self._declared(bytes(result)) if b"(device)" in result or b"=device" in result else bytes(result)

    def _visit(self, node: ast.AST, in_module: bool) -> None:
        if isinstance(node, ast.JoinedStr):  # the positions inside are unreliable before Python 3.12
            return
        if isinstance(node, ast.ClassDef):
            in_module = node.name in self.modules
        inside = in_module
        if isinstance(node, ast.Call):
            inside = self._call(node, in_module)
        for child in ast.iter_child_nodes(node):
            self._visit(child, inside)

    def _call(self, node: ast.Call, in_module: bool) -> bool:
        """Rewrites one call; whether modules that are made inside it are moved together with another."""
        name = _torch_name(node.func)
        keywords = {keyword.arg for keyword in node.keywords}
        if name == "normal" and "size" in keywords:
            self._keyword(node)
        elif name in FACTORIES | WITHOUT_KEYWORD:
            drawn = "generator" in keywords and not self.generators_on_cpu
            by_keyword = self.style == "device" and not ("generator" in keywords and self.generators_on_cpu)
            if name not in WITHOUT_KEYWORD and (by_keyword or drawn or "requires_grad" in keywords):
                self._keyword(node)
            else:
                self._move(node)
        elif name == "Generator" and not self.generators_on_cpu:
            self._keyword(node)
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "numpy" and not node.args:
            self._insert(self._end(node.func.value), 1, b".cpu()")
        elif not in_module and self._makes_a_module(node.func):
            self._move(node)
            return True
        return in_module

    def _makes_a_module(self, func: ast.expr) -> bool:
        if isinstance(func, ast.Name):
            return func.id in self.modules
        owner = func.value if isinstance(func, ast.Attribute) else None
        is_nn = isinstance(owner, ast.Name) and owner.id == "nn"
        return isinstance(func, ast.Attribute) and (is_nn or _torch_name(owner) == "nn") and func.attr in _in_nn()

    def _move(self, node: ast.Call) -> None:
        by_name = self.style == "device" and self.names_torch
        self._insert(self._end(node), 0, b".to(device)" if by_name else b".cuda()")

    def _keyword(self, node: ast.Call) -> None:
        text = b"device=device" if self.style == "device" and self.names_torch else b'device="cuda"'
        last = self._last_argument(node)
        self._insert(last or self._end(node) - 1, 0, b", " + text if last else text)

    def _last_argument(self, node: ast.Call) -> int | None:
        """Where the last argument ends, or None without arguments."""
        start, end = self._end(node.func), self._end(node)
        last = None
        lines = io.BytesIO(self.data[start:end])
        for token in tokenize.tokenize(lines.readline):
            if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING):
                at = self._inside(start, end, token.end)
                if (at < end and token.string not in ",(") or (last and token.string == "("):
                    last = at
            if token.type == tokenize.OP and self._inside(start, end, token.end) >= end:
                break
        return last

    def _inside(self, start: int, end: int, place: tuple[int, int]) -> int:
        """The offset of a token's place in the piece from ``start`` on; columns count code points."""
        lines = self.data[start:end].split(b"\n")
        before = sum(len(line) + 1 for line in lines[: place[0] - 1])
        if place[0] > len(lines):
            return end
        return start + before + len(lines[place[0] - 1].decode()[: place[1]].encode())

    def _end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def _insert(self, offset: int, order: int, text: bytes) -> None:
        self.insertions.append(_Insertion(offset, order, text))

    def _declared(self, data: bytes) -> bytes:
        """With the declaration below the imports at the file's top level."""
        imports = [node for node in ast.parse(data).body if isinstance(node, ast.Import | ast.ImportFrom)]
        lines = data.splitlines(keepends=True)
        at = imports[-1].end_lineno or 0
        end = b"\r\n" if lines[0].endswith(b"\r\n") else b"\n"
        return b"".join([*lines[:at], DECLARATION + end, *lines[at:]])


def _last_name(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _torch_name(func: ast.expr | None) -> str:
    """``zeros`` for ``torch.zeros``; empty for everything else."""
    plain = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "torch"
    return func.attr if plain and isinstance(func, ast.Attribute) else ""


@lru_cache
def _in_nn() -> frozenset[str]:
    """The names of the modules in ``torch.nn``."""
    import torch

    return frozenset(
        name for name, one in vars(torch.nn).items() if isinstance(one, type) and issubclass(one, torch.nn.Module)
    )


def _modules_of(files: dict[Path, bytes]) -> frozenset[str]:
    """The names of the program's own classes that are modules, by way of their bases."""
    classes = [node for data in files.values() for node in ast.walk(ast.parse(data)) if isinstance(node, ast.ClassDef)]
    found: set[str] = set()
    while True:
        more = {
            one.name
            for one in classes
            if any(_last_name(base) in found or _last_name(base) in _in_nn() for base in one.bases)
        }
        if more <= found:
            return frozenset(found)
        found |= more


def rewrite(files: dict[Path, bytes], style: str) -> dict[Path, bytes]:
    """The files of a program for CUDA. Raises ValueError where a file already has words that are inserted."""
    sources = {path: data for path, data in files.items() if path.suffix == ".py"}
    modules = _modules_of(sources)
    result = dict(files)
    for path, data in sources.items():
        if undone(data) != data:
            raise ValueError(f"{path} already speaks of devices")
        result[path] = _File(data, style, modules).rewritten()
        ast.parse(result[path])
        if undone(result[path]) != data:
            raise ValueError(f"{path} cannot be taken back")
    return result


def undone(data: bytes) -> bytes:
    """A file without what was inserted into it."""
    lines = data.splitlines(keepends=True)
    data = b"".join(line for line in lines if line.rstrip(b"\r\n") != DECLARATION)
    for text in INSERTED:
        data = data.replace(text, b"")
    return data


def undo(folder: Path) -> None:
    """Take the insertions out of all files below ``folder``, in place."""
    for path in folder.rglob("*.py"):
        path.write_bytes(undone(path.read_bytes()))


@lru_cache
def has_cuda(python: str) -> bool:
    """Whether that interpreter's torch can use CUDA here."""
    done = subprocess.run([python, "-c", "import torch; print(torch.cuda.is_available())"], capture_output=True)
    return done.stdout.strip() == b"True"


def write(case: Case, style: str, out: Path) -> None:
    """The case, rewritten, as ``out/SLUG``. Raises ValueError where it cannot be."""
    target = out / case.slug
    shutil.rmtree(target, ignore_errors=True)
    folders = [case.before, *case.experts, *case.wrongs]
    rewritten = {}
    for folder in folders:
        files = {path.relative_to(folder): path.read_bytes() for path in _files(folder)}
        rewritten[folder.name] = rewrite(files, style)
    for name, files in rewritten.items():
        for path, data in files.items():
            place = target / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
    said = (case.folder / "case.toml").read_text(encoding="utf-8")
    file, _, line = case.fails_at.rpartition(":")
    if file and any(one.rstrip() == DECLARATION for one in rewritten["before"][Path(file)].splitlines()[: int(line)]):
        said = said.replace(f'"{case.fails_at}"', f'"{file}:{int(line) + 1}"')
    (target / "case.toml").write_text(f"for_cuda = true\n{said}", encoding="utf-8")


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)


def main() -> int:
    """The command line; 0 when every case was rewritten."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--style", choices=STYLES, default="method")
    parser.add_argument("--slug", action="append", default=[])
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", nargs="*", type=Path, help="folders of cases; without any: cases/")
    a = parser.parse_args()
    failed = 0
    for case in cases.find(a.folders or cases.FOLDERS[:1], a.slug):
        try:
            write(case, a.style, a.out)
        except ValueError as error:
            failed += 1
            print(f"{case.slug}: {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
