"""Losses of earlier steps go backward once more: totals, averages and lists that are not cut or not emptied."""

from __future__ import annotations

from ..axes import Impossible
from ..draft import Draft
from ..kit import Kit
from .common import assemble, box_of, defined, marked

PLACES = ("here", "end")
_CHANGEABLE = ("bare", "list", "dict", "dataclass", "object")


def accumulated(kit: Kit) -> Draft:
    """The draft, by what accumulates."""
    if kit.axes.optimizer == "manual":
        raise Impossible("the losses are all that can be compared, and they differ by the repair")
    return {"running": _running, "average": _average, "groups": _groups, "list": _list}[kit.axes.scenario](kit)


def _running(kit: Kit) -> Draft:
    """The healthy program sends the loss of the batch backward and adds its number to the total."""
    if kit.axes.place != "here":
        raise Impossible("one place only")
    box = box_of(kit, "loss", _CHANGEABLE)
    [read] = box.read("$total")
    augmented = box.kind != "object" and kit.chance("augmented")

    def add(value: str) -> list[str]:
        return [f"{read} += {value}"] if augmented else box.store("$total", [f"{read} + {value}"])

    update = kit.update([f"⟦here?$loss¦{read}⟧.backward()"])
    loss_setup, loss = kit.loss("$out", "$y")
    reset = kit.chance("reset-each-epoch") and kit.axes.layout in ("script", "main", "argparse", "epoch-function")
    init = [f"$total = {box.pack(['0.0'])}"]
    return assemble(
        kit,
        update,
        [*defined(box), kit.network()],
        title="The running total of the losses goes backward instead of the loss",
        notes="Right: backward on the loss of the batch; the total takes its number. Wrong: retain_graph=True.",
        setup=[*loss_setup, *([] if reset else init)],
        epoch=init if reset else [],
        forward=["$out = $model($x)", f"$loss = {loss}", *marked("here", add("$loss"), otherwise=True)],
        tail=marked("here", add(kit.pick("number", ("$loss.item()", "$loss.detach()")))),
        places={"after": frozenset({"here"})},
    )


def _average(kit: Kit) -> Draft:
    """A smoothed loss is what goes backward; its past is only a number."""
    box = box_of(kit, "loss", (*_CHANGEABLE, "tuple", "namedtuple"))
    [read] = box.read("$total")
    rate = kit.pick("smoothing", (("0.9", "0.1"), ("0.5", "0.5"), ("0.8", "0.2")))
    loss_setup, loss = kit.loss("$out", "$y")
    value = f"{rate[0]} * {read}⟦here?.detach()⟧ + {rate[1]} * $loss"
    found = {"after": frozenset({kit.axes.place})}
    return assemble(
        kit,
        kit.update([f"{read}.backward()"]),
        [*defined(box), kit.network()],
        title="The smoothed loss goes backward with the losses of earlier batches in it",
        notes="Right: detach the average of the past. Wrong: retain_graph=True.",
        setup=[*loss_setup, f"$total = {box.pack(['torch.zeros(())'])}"],
        forward=["$out = $model($x)", f"$loss = {loss}", *box.store("$total", [value])],
        tail=marked("end", box.cut("$total")),
        places=found,
    )


def _groups(kit: Kit) -> Draft:
    """The losses of a few batches make one step; the total must start anew after it."""
    if kit.axes.place != "here":
        raise Impossible("one place only")
    box = box_of(kit, "loss", _CHANGEABLE)
    [read] = box.read("$total")
    size = kit.pick("group", (2, 3))
    whole = kit.pick("group-mean", (f"{read}.backward()", f"({read} / {size}).backward()"))
    update = kit.update([whole])
    if update.before:
        raise Impossible("the gradients are cleared after the step of a group")
    loss_setup, loss = kit.loss("$out", "$y")
    lines = [*update.after, *marked("here", box.store("$total", ["0.0"]))]
    draft = assemble(
        kit,
        update,
        [*defined(box), kit.network()],
        title=f"The total of {size} batches is not started afresh after its step",
        notes="Right: reset the total after the step (or cut it there). Wrong: retain_graph=True.",
        setup=[*loss_setup, f"$total = {box.pack(['0.0'])}"],
        forward=["$out = $model($x)", f"$loss = {loss}", *box.store("$total", [f"{read} + $loss"])],
        places={"after": frozenset({"here"})},
        loop="for $index, ($x, $y) in enumerate($batches, start=1):",
        epochs=6,
    )
    grouped = [f"if $index % {size} == 0:", *(_deeper(line) for line in lines)]
    return Draft(**{**draft.__dict__, "update": grouped})


def _list(kit: Kit) -> Draft:
    """The same with a list of losses that must be emptied."""
    if kit.axes.place != "here" or kit.axes.container not in ("list", "dict") or kit.axes.depth > 1:
        raise Impossible("a list of losses")
    where = "$losses" if kit.axes.container == "list" else '$losses["batch"]'
    empty = "[]" if kit.axes.container == "list" else '{"batch": []}'
    size = kit.pick("group", (2, 3))
    joined = kit.pick("join", (f"sum({where})", f"torch.stack({where}).sum()", f"torch.stack({where}).mean()"))
    update = kit.update(["whole.backward()"])
    if update.before:
        raise Impossible("the gradients are cleared after the step of a group")
    loss_setup, loss = kit.loss("$out", "$y")
    reset = kit.pick("empty", (f"{where}.clear()", f"{where} = []", f"del {where}[:]"))
    lines = [f"whole = {joined}", *update.after, f"⟦here?{reset}⟧"]
    draft = assemble(
        kit,
        update,
        [kit.network()],
        title=f"The list of the losses of {size} batches is not emptied after its step",
        notes="Right: empty the list after the step. Wrong: retain_graph=True; where it is a mean: to detach the rest.",
        setup=[*loss_setup, f"$losses = {empty}"],
        forward=["$out = $model($x)", f"$loss = {loss}", f"{where}.append($loss)"],
        places={"after": frozenset({"here"})},
        loop="for $index, ($x, $y) in enumerate($batches, start=1):",
        epochs=6,
    )
    grouped = [f"if $index % {size} == 0:", *(_deeper(line) for line in lines)]
    return Draft(**{**draft.__dict__, "update": grouped})


def _deeper(line: str) -> str:
    return line.replace("⟦here?", "⟦here?    ", 1) if line.startswith("⟦") else f"    {line}"
