"""A function of parameters is memoised: its result outlives the step whose graph it carries. Do not cache it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import libcst as cst

from autodetach.diagnosis.findings import Findings
from autodetach.model import Candidate, Edit
from autodetach.repairs.interface import Example, candidate
from autodetach.source.edits.calls import drop_decorator
from autodetach.source.edits.lines import indented
from autodetach.source.statement import Decorator, Statement


class DropCache:
    """What a memo hands out was computed from parameters that have been updated since.

    The decorator goes (a ``cached_property`` becomes a ``property``), or the ``if`` that guards the computation.
    """

    name: ClassVar[str] = "drop-cache"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "a decorator", "@lru_cache\ndef table(n):\n    return scale * n\n", "def table(n):\n    return scale * n\n"
        ),
        Example(
            "a dictionary",
            "def table(n):\n    if n not in memo:\n        memo[n] = scale * n\n    return memo[n]\n",
            "def table(n):\n    return scale * n\n",
        ),
    )

    def propose(self, findings: Findings) -> Iterable[Candidate]:
        options: dict[tuple[Edit, ...], str] = {}
        for pair in findings.cuts:
            for site in (pair.birth[0] if pair.birth else None, *pair.past):
                for _, statement in findings.statements(site):
                    options.update(self._unguarded(statement))
                    if statement.function is not None:
                        options.update(self._undecorated(statement.function))
        for edits, words in options.items():
            patch = candidate(findings.book, self.name, words, edits)
            if patch is not None:
                yield patch

    @staticmethod
    def _undecorated(function: Statement) -> dict[tuple[Edit, ...], str]:
        found: dict[tuple[Edit, ...], str] = {}
        for decorator in function.decorators:
            edit = _as_property(function, decorator) or drop_decorator(function, decorator)
            if edit is not None:
                found[(edit,)] = f"do not cache: @{decorator.code} in line {decorator.span.line}"
        return found

    @staticmethod
    def _unguarded(statement: Statement) -> dict[tuple[Edit, ...], str]:
        """The ``if`` around the making, without an ``else``: its body runs every time."""
        block = statement.block
        if block is None or not isinstance(block.node, cst.If) or block.node.orelse is not None:
            return {}
        if any(not s.is_simple or s.shares_line for s in block.body):
            return {}
        if "\n" in "".join(s.code for s in block.body) or block.shares_line:
            return {}
        source = block.tree.source
        words = f"compute anew every time: the if in line {block.span.line}"
        made, behind = block.body[-1], [s for s in block.suite if s.start > block.start][:1]
        if behind and behind[0].kind == "Return" and made.kind == "Assign" and len(made.targets) == 1:
            value = made.code.partition("=")[2].strip()
            if behind[0].code == f"return {made.targets[0]}":
                body = "\n".join((*(s.code for s in block.body[:-1]), f"return {value}"))
                text = indented(source, body, block.indentation)
                return {(Edit(source.name, block.lines_start, behind[0].lines_end, text),): words}
        text = indented(source, "\n".join(s.code for s in block.body), block.indentation)
        return {(Edit(source.name, block.lines_start, block.lines_end, text),): words}


def _as_property(function: Statement, decorator: Decorator) -> Edit | None:
    if decorator.code.split("(")[0].rpartition(".")[2] != "cached_property":
        return None
    source = function.tree.source
    start = source.offset(decorator.span.line, decorator.span.column)
    end = source.offset(decorator.span.end_line, decorator.span.end_column)
    return Edit(source.name, start, end, "property") if start is not None and end is not None else None
