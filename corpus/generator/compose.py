"""From axes to a program: the cause's draft, laid out and typed."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .axes import Axes, Impossible, Menu, draw
from .causes import CAUSES
from .draft import Draft
from .extras import enrich
from .kit import Kit
from .layout import lay_out
from .marks import render
from .names import Names
from .style import to_bytes, typeset

MOST_ATTEMPTS = 400
MOST_LINES = 110
"""All files together: a reader takes the program in at once."""


@dataclass(frozen=True)
class Composed:
    """The folders of a case, each a mapping from path to content; not yet run."""

    axes: Axes
    draft: Draft
    entry: str
    args: tuple[str, ...]
    folders: dict[str, dict[str, bytes]]


def compose(axes: Axes) -> Composed:
    """The case that the axes describe.

    Raises:
        Impossible: there is no such program.
    """
    kit = Kit(axes)
    draft = enrich(CAUSES[axes.cause].build(kit), axes)
    names = Names(axes.rng("names"), "alphabet" in axes.styles)
    program = typeset(lay_out(draft, axes, names), axes)
    folders = {}
    for folder, present in {"before": frozenset[str](), **draft.variants}.items():
        files = {path: render(text, present) for path, text in program.files.items()}
        for text in files.values():
            _parse(text)
        folders[folder] = {path: to_bytes(text, axes) for path, text in files.items()}
    if sum(len(text.splitlines()) for text in folders["before"].values()) > MOST_LINES:
        raise Impossible("the program is too long")
    for folder in list(draft.variants):
        same = [other for other in draft.variants if other < folder and folders[other] == folders[folder]]
        if folders[folder] == folders["before"]:
            raise Impossible(f"{folder} has nothing that before has not")
        if same:
            del folders[folder]
    return Composed(axes, draft, program.entry, program.args, folders)


def _parse(text: str) -> None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise AssertionError(f"the grammar wrote what is no Python: {error}\n{text}") from error


def menu(cause: str) -> Menu:
    return CAUSES[cause].menu


def attempts(seed: int, number: int, causes: tuple[str, ...] = ()) -> Iterator[Axes]:
    """Points for case ``number`` until one is possible; the cases take turns through all causes and scenarios."""
    turns = [
        (cause, scenario)
        for cause in causes or CAUSES
        for scenario in menu(cause).scenarios
        for _ in range(menu(cause).turns)
    ]
    random.Random(seed).shuffle(turns)
    cause, scenario = turns[number % len(turns)]
    only = replace(menu(cause), scenarios=(scenario,))
    for attempt in range(MOST_ATTEMPTS):
        yield draw(random.Random(f"{seed}/{number}/{attempt}"), cause, only)
