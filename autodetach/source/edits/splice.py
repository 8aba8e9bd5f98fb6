"""Putting code in the place of an expression."""

from __future__ import annotations

from autodetach.model import Edit
from autodetach.source.expression import Expression
from autodetach.source.text import SourceText

_MISREAD_IN_F_STRING = frozenset("'\"{}:!\\#\n")


def splice(expression: Expression, code: str) -> Edit | None:
    """Put ``code`` in its place; parentheses around it stay. None where an f-string forbids it."""
    if expression.in_f_string and _MISREAD_IN_F_STRING & set(code):
        return None
    if expression.is_bare_generator:
        code = f"({code})"  # it shares its parentheses with the call
    return Edit(expression.tree.source.name, expression.start, expression.end, code)


def trimmed(source: SourceText, edit: Edit) -> Edit:
    """The same edit without the text that it has in common with what it replaces, at either end."""
    old, new = source.text[edit.start : edit.end], edit.text
    limit = min(len(old), len(new))
    head = next((i for i in range(limit) if old[i] != new[i]), limit)
    limit -= head
    tail = next((i for i in range(limit) if old[-1 - i] != new[-1 - i]), limit)
    return Edit(edit.file, edit.start + head, edit.end - tail, new[head : len(new) - tail])
