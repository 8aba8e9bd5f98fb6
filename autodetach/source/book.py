"""The project's files as they were when the analysis began."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from autodetach.errors import SourceError
from autodetach.model import Chain, Edit, Frame, Span
from autodetach.source.apply import apply
from autodetach.source.expression import Expression
from autodetach.source.module import SourceModule
from autodetach.source.statement import Statement


class SourceBook:
    """Files are read once, on first use; whoever asks later sees the same bytes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._modules: dict[str, SourceModule | None] = {}
        self.originals: dict[str, bytes] = {}

    def module(self, file: str) -> SourceModule | None:
        """The parsed file, or None where it is none of the project's or cannot be parsed."""
        if file not in self._modules:
            self._modules[file] = self._read(file)
        return self._modules[file]

    def _read(self, file: str) -> SourceModule | None:
        if file.startswith(("/", "<")) or ".." in file.split("/"):
            return None
        try:
            if not (self.root / file).is_file():  # a run may name a pipe, too
                return None
            data = (self.root / file).read_bytes()
            module = SourceModule.parse(file, data)
        except (OSError, ValueError, SourceError):
            return None
        self.originals[file] = data
        return module

    def expression(self, span: Span) -> Expression | None:
        module = self.module(span.file)
        return module.expression(span) if module is not None else None

    def statement(self, span: Span) -> Statement | None:
        module = self.module(span.file)
        return module.statement(span.line, span.column) if module is not None else None

    def code(self, span: Span) -> str:
        found = self.expression(span)
        if found is not None:
            return found.code
        statement = self.statement(span)
        return statement.code.splitlines()[0] if statement is not None else ""

    def patched(self, edits: Iterable[Edit]) -> Mapping[str, bytes]:
        """The new bytes of every file that the edits touch. Raises SourceError where they overlap."""
        by_file: dict[str, list[Edit]] = {}
        for edit in edits:
            by_file.setdefault(edit.file, []).append(edit)
        new = {}
        for file, some in by_file.items():
            module = self.module(file)
            if module is None:
                raise SourceError(f"{file} cannot be edited")
            new[file] = module.encode(apply(module, some))
        return new

    def editable(self, chain: Chain) -> Iterable[Frame]:
        """The frames of a chain that stand in files of the project, innermost first."""
        return (frame for frame in chain if frame.editable)
