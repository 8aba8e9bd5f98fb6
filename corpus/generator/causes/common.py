"""What the builders of drafts share."""

from __future__ import annotations

from collections.abc import Sequence

from ..axes import Impossible
from ..containers import Container
from ..draft import Definition, Draft
from ..kit import Kit, Update


def box_of(kit: Kit, part: str, allowed: Sequence[str] = ()) -> Container:
    """The container of the axes, for one tensor."""
    if allowed and kit.axes.container not in allowed:
        raise Impossible(f"no {kit.axes.container} for this")
    return Container(kit.axes.container, (part,), kit.axes.depth, updates_in_place=kit.chance("in-place-update"))


def defined(box: Container, room: str = "engine") -> list[Definition]:
    return [Definition(room, box.definition)] if box.definition else []


def marked(guard: str, lines: Sequence[str], otherwise: bool = False) -> list[str]:
    """Lines that stand only where the guard is present, or only where it is not."""
    return [f"⟦{guard}?{'¦' if otherwise else ''}{line}⟧" for line in lines]


def variants(kit: Kit, places: Sequence[str]) -> dict[str, frozenset[str]]:
    """``after`` cuts where the axes say; one more of ``places`` is a right repair, too."""
    place = kit.axes.place
    if place not in places:
        raise Impossible(f"no cut at {place} here")
    others = [other for other in places if other != place]
    found = {"after": frozenset({place})}
    if others:
        other = kit.pick("other-place", others)
        found[f"after-{other}"] = frozenset({other})
    return found


def assemble(
    kit: Kit,
    update: Update,
    classes: list[Definition],
    *,
    title: str,
    notes: str,
    setup: list[str],
    forward: list[str],
    places: dict[str, frozenset[str]],
    tail: Sequence[str] = (),
    shape: str = "",
    classes_of_data: bool = False,
    loop: str = "for $x, $y in $batches:",
    epoch: Sequence[str] = (),
    close: Sequence[str] = (),
    value: str = "$loss.item()",
    model: str = "",
    epochs: int = 0,
) -> Draft:
    """The draft of a program that trains one model on batches of (x, y)."""
    data = kit.data(shape or kit.body.shape, classes_of_data)
    style = kit.data_style()
    return Draft(
        title=f"{kit.theme} {title}",
        notes=notes,
        definitions=[*classes, Definition("data", data.function(style))],
        data=data.statements(style),
        setup=[f"$model = {model or kit.make(data.outputs)}", *update.setup, *setup],
        forward=[*update.before, *forward],
        update=[*update.after, *tail],
        epoch=list(epoch),
        close=[*close, *update.close],
        variants=places,
        loop=loop,
        epochs=epochs or kit.epochs,
        value=value,
        judge_losses=update.by_hand,
    )
