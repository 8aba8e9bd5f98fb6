"""Marks in a program's text: what stands only in the healthy version, and what only in the broken one.

``⟦cut?.detach()⟧`` is text that stands where the guard ``cut`` is present; ``⟦cut?a¦b⟧`` is ``a`` with the guard and
``b`` without; ``⟦store|use?…⟧`` needs one of the two. A line of which nothing remains goes away altogether.
"""

from __future__ import annotations

import re
from collections.abc import Set

_MARK = re.compile(r"⟦([\w|]+)\?([^⟦⟧¦]*)(?:¦([^⟦⟧]*))?⟧")


def render(text: str, present: Set[str]) -> str:
    """The program with the guards that are ``present``."""

    def choose(mark: re.Match[str]) -> str:
        wanted = set(mark[1].split("|"))
        return mark[2] if wanted & present else mark[3] or ""

    lines = []
    for line in text.split("\n"):
        rendered, found = line, "⟦" in line
        while "⟦" in rendered:
            shorter = _MARK.sub(choose, rendered)
            if shorter == rendered:
                raise ValueError(f"a mark that is none: {line}")
            rendered = shorter
        if not found or rendered.strip():
            lines.append(rendered.rstrip() if found else rendered)
    return "\n".join(lines)


def guards(text: str) -> frozenset[str]:
    """All guards that the text names."""
    return frozenset(name for mark in re.finditer(r"⟦([\w|]+)\?", text) for name in mark[1].split("|"))
