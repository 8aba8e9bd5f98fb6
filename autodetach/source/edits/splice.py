"""Putting code in the place of an expression."""

from __future__ import annotations

from autodetach.model import Edit
from autodetach.source.expression import Expression

_MISREAD_IN_F_STRING = frozenset("'\"{}:!\\#\n")


def splice(expression: Expression, code: str) -> Edit | None:
    """Put ``code`` in its place; parentheses around it stay. None where an f-string forbids it."""
    if expression.in_f_string and _MISREAD_IN_F_STRING & set(code):
        return None
    if expression.is_bare_generator:
        code = f"({code})"  # it shares its parentheses with the call
    return Edit(expression.tree.source.name, expression.start, expression.end, code)
