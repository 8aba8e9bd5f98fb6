"""Applying edits to a file's text, and proof that nothing but the edited nodes changed."""

from __future__ import annotations

import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import libcst as cst

from autodetach.errors import SourceError
from autodetach.model import Edit
from autodetach.source.module import SourceModule

_Place = tuple[str, int, int]
"""A node's type and extent."""


def apply(module: SourceModule, edits: Sequence[Edit]) -> str:
    """The module's text with its edits made; edits of other files are passed over.

    Edits at the same place keep their order. Raises ``SourceError`` where two overlap or one lies outside.
    """
    parts: list[str] = []
    done = 0
    for edit in _ordered(module, edits):
        if edit.start < done or not edit.start <= edit.end <= len(module.text):
            raise SourceError(f"{module.name}: edits overlap at line {module.source.position(edit.start)[0]}")
        parts += [module.text[done : edit.start], edit.text]
        done = edit.end
    return "".join((*parts, module.text[done:]))


def apply_all(modules: Mapping[str, SourceModule], edits: Sequence[Edit]) -> dict[str, bytes]:
    """The new bytes of every file that the edits touch. Raises ``SourceError`` as ``apply`` does."""
    unknown = {edit.file for edit in edits} - modules.keys()
    if unknown:
        raise SourceError(f"{min(unknown)}: not read, cannot be edited")
    touched = sorted({edit.file for edit in edits})
    return {name: modules[name].encode(apply(modules[name], edits)) for name in touched}


def _ordered(module: SourceModule, edits: Sequence[Edit]) -> list[Edit]:
    """By place; an insertion comes before what is replaced from the same place on."""
    return sorted((e for e in edits if e.file == module.name), key=lambda edit: (edit.start, edit.end))


def only_intended(before: SourceModule, after_text: str, edits: Sequence[Edit]) -> str | None:
    """Why ``after_text`` is not the edited source with all other nodes as they were; None where it is.

    Every expression and statement that no edit touches must be found again, of the same type, in the same
    place but for the shift, and in the same suite; and none may have appeared outside the edits.
    """
    if after_text != apply(before, edits):
        return "the text differs outside the edits"
    try:
        after = SourceModule.parse(before.name, before.encode(after_text))
    except SourceError as error:
        return f"the edited source does not parse: {error}"
    fault = _compile_error(after_text)
    # A file may be written for a newer Python than this one.
    if fault is not None and _compile_error(before.text) is None:
        return f"the edited source does not compile: {fault}"
    old, new = _places(before), _places(after)
    shifts = _Shifts(_ordered(before, edits))
    return _lost(before, old, new, shifts) or _appeared(after, old, new, shifts)


def _compile_error(text: str) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "edited", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError) as error:
            return str(error)
    return None


def _places(module: SourceModule) -> dict[_Place, _Place | None]:
    """Every expression and statement; for a statement also what its suite belongs to.

    A compound statement counts by its start alone: its end moves with what is done inside it.
    """
    tree = module.tree
    found: dict[_Place, _Place | None] = {}
    for node in tree.parents:
        if isinstance(node, (cst.BaseExpression, cst.BaseSmallStatement)):
            place = (type(node).__name__, *tree.extent(node))
        elif isinstance(node, cst.BaseCompoundStatement):
            place = (type(node).__name__, tree.extent(node)[0], tree.extent(node)[0])
        else:
            continue
        found[place] = None
        if not isinstance(node, cst.BaseExpression):
            suite = tree.parents[node]
            if isinstance(suite, cst.SimpleStatementLine):
                suite = tree.parents[suite]
            # An ``elif`` stands in no suite but in its ``if``.
            owner = suite if isinstance(suite, cst.If) else tree.parents.get(suite)
            if owner is not None:
                found[place] = (type(owner).__name__, tree.extent(owner)[0], tree.extent(owner)[0])
    return found


def _lost(
    before: SourceModule,
    old: Mapping[_Place, _Place | None],
    new: Mapping[_Place, _Place | None],
    shifts: _Shifts,
) -> str | None:
    statements = tuple(name for name in dir(cst) if _is_statement(name))
    for place, owner in old.items():
        kind, start, end = place
        if shifts.inside(start, end) or (kind in statements and shifts.at_edge(start, end)):
            continue
        line = before.source.position(start)[0]
        moved = next((p for p in shifts.candidates(place) if p in new), None)
        if moved is None:
            return f"line {line}: {kind} is not edited, but changed"
        head = before.source.line_start(start)
        if owner is None or shifts.indentation(head, start):
            continue
        if new[moved] not in set(shifts.candidates(owner)):
            return f"line {line}: {kind} is not edited, but in another block"
    return None


def _is_statement(name: str) -> bool:
    kind = getattr(cst, name)
    return isinstance(kind, type) and issubclass(kind, cst.BaseSmallStatement)


def _appeared(
    after: SourceModule,
    old: Mapping[_Place, _Place | None],
    new: Mapping[_Place, _Place | None],
    shifts: _Shifts,
) -> str | None:
    known = {moved for place in old for moved in shifts.candidates(place)}
    for place in new:
        kind, start, end = place
        if place not in known and not shifts.in_new_text(start, end):
            return f"line {after.source.position(start)[0]}: {kind} appeared outside the edits"
    return None


class _Shifts:
    """Where the edits put the places of the text."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits
        self._starts = [edit.start for edit in edits]
        self._ends = [edit.end for edit in edits]
        self._grown = [0, *accumulate(len(e.text) - (e.end - e.start) for e in edits)]
        self._new = [
            (edit.start + grown, edit.start + grown + len(edit.text))
            for edit, grown in zip(edits, self._grown, strict=False)
        ]

    def _near(self, start: int, end: int) -> Sequence[Edit]:
        """The edits that lie between two places or touch them."""
        return self._edits[bisect_left(self._ends, start) : bisect_right(self._starts, end)]

    def inside(self, start: int, end: int) -> bool:
        end = max(end, start + 1)
        return any(edit.start < end and edit.end > start for edit in self._near(start, end))

    def at_edge(self, start: int, end: int) -> bool:
        return bool(self._near(start, end))

    def indentation(self, head: int, start: int) -> bool:
        """Whether the indentation from ``head`` to ``start`` is edited; a line inserted at ``head``."""
        return any(edit.end > head or head == start for edit in self._near(head, start))

    def candidates(self, place: _Place) -> Iterator[_Place]:
        """Where the place may be now. What is inserted right at its edge may belong to it or not."""
        kind, start, end = place
        for new_start in self._candidates(start):
            if start == end:
                yield kind, new_start, new_start
            else:
                for new_end in self._candidates(end):
                    yield kind, new_start, new_end

    def _candidates(self, offset: int) -> list[int]:
        first = bisect_left(self._ends, offset)
        place = offset + self._grown[first]
        found = [place]
        for edit in self._edits[first : bisect_right(self._starts, offset)]:
            if edit.end <= offset:
                # It ends here: behind its text, or (as before) in front of it.
                place = place + len(edit.text) - (edit.end - edit.start)
                found += [place, place - len(edit.text)]
            elif edit.start == offset:
                found.append(place + len(edit.text))
        return found

    def in_new_text(self, start: int, end: int) -> bool:
        return any(begin <= end and finish >= start for begin, finish in self._new)
