"""A flag that nobody needs: data marked as requiring gradients, and something computed of it once."""

from __future__ import annotations

from ..axes import Impossible
from ..draft import Definition, Draft
from ..kit import Kit
from .common import assemble

FLAGS = {
    "argument": ("⟦here?¦, requires_grad=True⟧", ""),
    "method": ("", "⟦here?¦.requires_grad_()⟧"),
    "attribute": ("", ""),
}


def spurious(kit: Kit) -> Draft:
    """The draft, by what is marked."""
    if kit.axes.container != "bare":
        raise Impossible("data is a tensor")
    return {
        "design": _design,
        "weights": _weights,
        "targets": _targets,
        "batches": _batches,
    }[kit.axes.scenario](kit)


def _marked_tensor(kit: Kit, name: str, call: str) -> list[str]:
    """``name = call`` with the flag, in one of the ways in which people set it."""
    inside, behind = FLAGS[kit.axes.place]
    lines = [f"{name} = {call[:-1]}{inside}){behind}"]
    if kit.axes.place == "attribute":
        lines.append(f"⟦here?¦{name}.requires_grad = True⟧")
    return lines


def _design(kit: Kit) -> Draft:
    """Powers of the inputs, computed once."""
    if kit.body.shape != "vector":
        raise Impossible("powers are vectors")
    rows = kit.size * kit.count
    loss_setup, loss = kit.loss("$model($design)", "$y")
    marked = _marked_tensor(kit, "$time", f"torch.linspace(-1, 1, {rows})")
    setup = [
        *marked,
        "$design = torch.stack([$time, $time**2, $time**3], dim=1)",
        "$y = torch.sin(3 * $time).unsqueeze(1).detach()",
    ]
    if kit.chance("target-first"):
        setup = [*marked[:1], "$y = torch.sin(3 * $time.detach()).unsqueeze(1)", *marked[1:], setup[-2]]
    return assemble(
        kit,
        kit.update(),
        [kit.network()],
        title="The inputs are marked as requiring gradients, and their powers are computed once",
        notes="Right: drop the flag; or detach the powers.",
        setup=[*loss_setup, *setup],
        forward=[f"$loss = {loss}"],
        places={"after": frozenset({"here"})},
        loop="for _ in range(3):",
        model=kit.make(1, inputs=3),
    )


def _weights(kit: Kit) -> Draft:
    """Weights of the outputs, normalised once."""
    data = kit.data(kit.body.shape)
    setup = [
        *_marked_tensor(kit, "$weights", f"torch.rand({data.outputs})"),
        "$weights = $weights / $weights.sum()" if kit.chance("rebind") else "$scale = $weights / $weights.sum()",
    ]
    name = "$scale" if "$scale" in setup[-1] else "$weights"
    return assemble(
        kit,
        kit.update(),
        [kit.network()],
        title="The weights of the error are marked as requiring gradients, and are normalised once",
        notes="Right: drop the flag; no optimizer holds the weights. Equal: detach the normalised weights.",
        setup=setup,
        forward=["$out = $model($x)", f"$loss = ({name} * ($out - $y) ** 2).mean()"],
        places={"after": frozenset({"here"})},
    )


def _targets(kit: Kit) -> Draft:
    """Targets of all batches, standardised once."""
    data = kit.data(kit.body.shape)
    loss_setup, loss = kit.loss("$out", "$goal[$i]")
    setup = [
        *_marked_tensor(kit, "$raw", f"torch.rand({kit.count}, {kit.size}, {data.outputs})"),
        "$goal = ($raw - $raw.mean()) / $raw.std()",
    ]
    return assemble(
        kit,
        kit.update(),
        [kit.network()],
        title="The targets are marked as requiring gradients, and are standardised once",
        notes="Right: drop the flag. Equal: detach the standardised targets.",
        setup=[*loss_setup, *setup],
        forward=["$out = $model($x)", f"$loss = {loss}"],
        places={"after": frozenset({"here"})},
        loop="for $i, ($x, _) in enumerate($batches):",
    )


def _batches(kit: Kit) -> Draft:
    """The flag is set where the batches are made, and they are standardised there."""
    loss_setup, loss = kit.loss("$out", "$y")
    draft = assemble(
        kit,
        kit.update(),
        [kit.network()],
        title="The inputs are marked as requiring gradients where the batches are made, before they are standardised",
        notes="Right: drop the flag. Equal: detach the standardised inputs.",
        setup=loss_setup,
        forward=["$out = $model($x)", f"$loss = {loss}"],
        places={"after": frozenset({"here"})},
        epochs=3,
    )
    data = kit.data(kit.body.shape)
    text = [
        "def make_batches(count, size):",
        f"    weight = torch.randn({data.inputs}, {data.outputs})",
        "    found = []",
        "    for _ in range(count):",
        *(f"        {line}" for line in _marked_tensor(kit, "$x", data.x)),
        f"        $y = {data.y}.detach()",
        "        $x = ($x - $x.mean()) / $x.std()",
        "        found.append(($x, $y))",
        "    return found",
    ]
    definitions = [*draft.definitions[:-1], Definition("data", "\n".join(text))]
    return Draft(**{**draft.__dict__, "definitions": definitions, "data": data.statements("list")})
