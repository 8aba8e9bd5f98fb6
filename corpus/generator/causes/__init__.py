"""The causes: each a menu of axes and a builder of drafts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..axes import LAYOUTS, Menu
from ..containers import CONTAINERS
from ..draft import Draft
from ..kit import Kit
from ..models import BODIES, CELLS
from . import (
    accumulated,
    adversarial,
    built_once,
    first_order,
    in_place,
    kept,
    no_grad,
    recurrent,
    shared,
    spurious,
    with_graph,
)

_BODIES = tuple(BODIES)
_OWN_OPTIMIZERS = ("sgd", "momentum", "adam", "adamw")


@dataclass(frozen=True)
class Cause:
    """``name`` is the cause in case.toml."""

    name: str
    build: Callable[[Kit], Draft]
    menu: Menu


CAUSES = {
    "recurrent": Cause(
        "carried-state",
        recurrent.recurrent,
        Menu(
            scenarios=("batches", "ticks"),
            models=tuple(CELLS),
            holders=("loop", "model", "buffer", "layers"),
            containers=CONTAINERS,
            places=recurrent.PLACES,
            layouts=LAYOUTS,
            turns=4,
        ),
    ),
    "kept": Cause(
        "carried-state",
        kept.kept,
        Menu(
            scenarios=("previous", "average", "queue", "table", "feedback", "hook", "generator"),
            models=_BODIES,
            holders=("loop", "model"),
            containers=CONTAINERS,
            places=kept.PLACES,
            layouts=LAYOUTS,
        ),
    ),
    "accumulated": Cause(
        "accumulated-loss",
        accumulated.accumulated,
        Menu(
            scenarios=("running", "average", "groups", "list"),
            models=_BODIES,
            containers=CONTAINERS,
            places=accumulated.PLACES,
            layouts=LAYOUTS,
        ),
    ),
    "built-once": Cause(
        "built-once",
        built_once.built_once,
        Menu(
            scenarios=("mixing", "normalised", "adjacency", "positions", "classes"),
            models=_BODIES,
            holders=built_once.HOLDERS,
            containers=("bare", "tuple", "dict", "namedtuple", "dataclass"),
            layouts=LAYOUTS,
        ),
    ),
    "with-graph": Cause(
        "dataset-with-graph",
        with_graph.with_graph,
        Menu(
            scenarios=("context", "features", "teacher", "old-outputs", "ratio", "replay", "dataset"),
            models=_BODIES,
            containers=CONTAINERS,
            places=with_graph.PLACES,
            layouts=LAYOUTS,
        ),
    ),
    "spurious": Cause(
        "requires-grad",
        spurious.spurious,
        Menu(scenarios=("design", "weights", "targets", "batches"), models=_BODIES, places=tuple(spurious.FLAGS)),
    ),
    "no-grad": Cause(
        "no-grad",
        no_grad.no_grad,
        Menu(
            scenarios=("block", "long-block", "left-off", "decorated-method", "decorated-helper"),
            models=_BODIES,
            places=no_grad.MODES,
        ),
    ),
    "shared": Cause(
        "shared-graph",
        shared.shared,
        Menu(
            scenarios=("pair", "container"),
            models=_BODIES,
            containers=("bare", "list", "tuple", "dict"),
            places=shared.PLACES,
        ),
    ),
    "adversarial": Cause(
        "gan-shared",
        adversarial.adversarial,
        Menu(
            scenarios=("critic-first", "generator-first", "critic-twice"),
            models=_BODIES,
            containers=CONTAINERS,
            optimizers=_OWN_OPTIMIZERS,
        ),
    ),
    "first-order": Cause(
        "first-order-grad",
        first_order.first_order,
        Menu(scenarios=("force", "penalty", "smooth", "residual"), models=_BODIES),
    ),
    "in-place": Cause(
        "in-place",
        in_place.in_place,
        Menu(scenarios=("gate", "flag", "reordered"), models=_BODIES, places=in_place.CHANGES),
    ),
}
