"""The axes along which programs differ, how a case is drawn, and which value of an axis is simpler."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

LAYOUTS = (
    "script",
    "main",
    "argparse",
    "epoch-function",
    "step-function",
    "trainer",
    "closure",
    "global",
    "function-attribute",
    "default-argument",
)
FILES = ("one", "model", "model-data", "engine", "package", "folder")
STYLES = (
    "alphabet",
    "backslash",
    "bom",
    "comments",
    "crlf",
    "decorator",
    "helper",
    "hints",
    "multiline",
    "no-final-newline",
    "semicolons",
    "tabs",
    "two-space",
    "walrus",
)
OPTIMIZERS = ("sgd", "momentum", "adam", "adamw", "manual", "two")
EXTRAS = ("best", "clip", "dropout", "echo", "history", "scheduler")


class Impossible(Exception):
    """The axes do not go together: the case is skipped, not forced."""


@dataclass(frozen=True)
class Axes:
    """All that a case is made from; the same axes give the same bytes."""

    cause: str
    scenario: str
    holder: str
    container: str
    depth: int
    place: str
    model: str
    optimizer: str
    extras: tuple[str, ...]
    layout: str
    files: str
    styles: tuple[str, ...]
    seed: int

    def rng(self, topic: str) -> random.Random:
        """Small choices come from the topic, so that another value of one axis leaves the rest alone."""
        return random.Random(f"{self.seed}/{topic}")

    def tags(self) -> tuple[str, ...]:
        """``axis=value``, one for each axis, for case.toml and for the report."""
        said = asdict(self)
        tags = []
        for name, value in said.items():
            values = value if isinstance(value, tuple) else (value,)
            tags += [f"{name}={one}" for one in values] if name != "seed" else []
        return tuple(tags)


@dataclass(frozen=True)
class Menu:
    """What a cause allows on the axes that depend on it; the first value of each is the simplest.

    ``turns``: how many cases each of its scenarios gets for one of another cause.
    """

    scenarios: tuple[str, ...]
    models: tuple[str, ...]
    holders: tuple[str, ...] = ("loop",)
    containers: tuple[str, ...] = ("bare",)
    places: tuple[str, ...] = ("here",)
    layouts: tuple[str, ...] = LAYOUTS[:6]
    optimizers: tuple[str, ...] = OPTIMIZERS
    extras: tuple[str, ...] = EXTRAS
    turns: int = 1


def draw(rng: random.Random, cause: str, menu: Menu) -> Axes:
    """One point of the cause's space; simple values are drawn more often where a program needs few specialities."""
    styles = tuple(sorted(rng.sample(STYLES, rng.choice((0, 1, 1, 2, 2, 3)))))
    if {"tabs", "two-space"} <= set(styles):
        styles = tuple(style for style in styles if style != "two-space")
    return Axes(
        cause=cause,
        scenario=rng.choice(menu.scenarios),
        holder=rng.choice(menu.holders),
        container=rng.choice(menu.containers),
        depth=rng.choice((1, 1, 1, 2, 3)),
        place=rng.choice(menu.places),
        model=rng.choice(menu.models),
        optimizer=rng.choice(menu.optimizers),
        extras=tuple(extra for extra in menu.extras if rng.random() < 0.15),
        layout=rng.choice(menu.layouts),
        files=rng.choice(("one", *FILES)),
        styles=styles,
        seed=rng.randrange(1 << 30),
    )


def simpler(axes: Axes, menu: Menu) -> Iterator[Axes]:
    """The same case with one thing less, the things that say least about the fault first.

    The scenario stays: another one would be another fault.
    """
    for style in axes.styles:
        yield replace(axes, styles=tuple(other for other in axes.styles if other != style))
    for extra in axes.extras:
        yield replace(axes, extras=tuple(other for other in axes.extras if other != extra))
    plain = {
        "files": "one",
        "optimizer": menu.optimizers[0],
        "model": menu.models[0],
        "layout": menu.layouts[0],
        "depth": 1,
        "container": menu.containers[0],
        "holder": menu.holders[0],
        "place": menu.places[0],
    }
    for name, value in plain.items():
        if getattr(axes, name) != value:
            yield replace(axes, **{name: value})
