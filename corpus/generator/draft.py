"""A program before it is laid out: its statements by purpose, with names still open.

``$name`` in a statement is a variable: the layout decides whether it is a local, an argument, a global or an attribute.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_NAME = re.compile(r"\$(\w+)")
_TARGETS = re.compile(r"^\s*([$\w, ()*]*\$[$\w, ()*]*?)(?:: [\w.\[\], |]+)? [-+*/]?= ")
_MARKS = re.compile(r"⟦[\w|]+\?|¦|⟧")


@dataclass(frozen=True)
class Definition:
    """A class or function at module level; ``room`` is the file it belongs to when there are several."""

    room: str
    text: str


@dataclass(frozen=True)
class Draft:
    """``epoch`` runs before the batches of an epoch and ``close`` after them; ``forward`` and ``update`` make one step.

    ``variants`` names the folders of right repairs and the guards that each of them has; ``after`` is the healthy
    program that a person would write.
    """

    title: str
    notes: str
    definitions: list[Definition]
    data: list[str]
    setup: list[str]
    forward: list[str]
    update: list[str]
    variants: dict[str, frozenset[str]]
    loop: str = "for $x, $y in $batches:"
    epoch: list[str] = field(default_factory=list)
    close: list[str] = field(default_factory=list)
    epochs: int = 4
    value: str = "$loss.item()"
    judge_losses: bool = False
    meanings_differ: bool = False

    @property
    def step(self) -> list[str]:
        return [*self.forward, *self.update]


def used(lines: Iterable[str]) -> list[str]:
    """The variables that occur in the lines, in the order of their first occurrence."""
    return list(dict.fromkeys(name for line in lines for name in _NAME.findall(line)))


def assigned(lines: Iterable[str]) -> list[str]:
    """The variables that the lines bind by an assignment (not those whose items or attributes they change)."""
    found: list[str] = []
    for line in "\n".join(lines).split("\n"):
        targets = _TARGETS.match(_MARKS.sub("", line))
        if targets:
            found += _NAME.findall(targets[1])
    return list(dict.fromkeys(found))


def bound_by(loop: str) -> list[str]:
    """The variables that the head of a ``for`` loop binds."""
    return used([loop.partition(" in ")[0]])


def indent(lines: Iterable[str], levels: int = 1) -> list[str]:
    """The lines, four blanks a level further in; one string may hold several lines."""
    return ["    " * levels + line if line else line for text in lines for line in text.split("\n")]
