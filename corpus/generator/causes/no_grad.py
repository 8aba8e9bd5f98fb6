"""Gradients are off where the loss is made."""

from __future__ import annotations

from ..axes import Impossible
from ..draft import Definition, Draft
from ..kit import Kit
from .common import assemble

MODES = ("no_grad", "set", "enable-false")
_HEADS = {
    "no_grad": "with torch.no_grad():",
    "set": "with torch.set_grad_enabled(False):",
    "enable-false": "with torch.autograd.set_grad_enabled(False):",
}


def no_grad(kit: Kit) -> Draft:
    """The draft, by how the gradients come to be off."""
    return {
        "block": _block,
        "long-block": _block,
        "left-off": _left_off,
        "decorated-method": _decorated,
        "decorated-helper": _decorated,
    }[kit.axes.scenario](kit)


def _block(kit: Kit) -> Draft:
    """The block for the target holds the prediction, too."""
    head = _HEADS[kit.axes.place]
    long = kit.axes.scenario == "long-block"
    loss_setup, loss = kit.loss("$out", "$goal")
    inside = ["$goal = 0.5 * $y + 0.5 * $frozen($x)"]
    if long and kit.chance("clamp"):
        inside.append("$goal = $goal.clamp(-1.0, 1.0)")
    moved = ["$out = $model($x)"]
    if long:
        moved = kit.pick(
            "moved",
            (
                ["$out = $model($x)", f"$loss = {loss}"],
                ["$scaled = 0.5 * $x", "$out = $model($scaled)"],
                ["$out, $mirror = $model($x), $model(-$x)", "$out = 0.5 * ($out - $mirror)"],
            ),
        )
    first = kit.chance("prediction-first") and len(moved) == 1
    swallowed = [f"⟦here?¦    ⟧{line}" for line in moved]
    if first:  # the healthy program predicts before the block
        lines = [
            *(f"⟦here?{line}⟧" for line in moved),
            head,
            *(f"⟦here?¦    {line}⟧" for line in moved),
            *(f"    {line}" for line in inside),
        ]
    else:
        lines = [head, *(f"    {line}" for line in inside), *swallowed]
    forward = [*lines, *([] if any("$loss" in line for line in moved) else [f"$loss = {loss}"])]
    soft = [
        "with torch.no_grad():",
        "    for slow, fast in zip($frozen.parameters(), $model.parameters()):",
        "        slow.lerp_(fast, 0.1)",
    ]
    follows = kit.chance("soft-update")
    return assemble(
        kit,
        kit.update(),
        [kit.network()],
        title="The block that keeps the target without a graph holds the prediction as well",
        notes="Right: move the prediction out; the target stays in. Wrong: loss.requires_grad_().",
        setup=[*loss_setup, f"$frozen = {kit.make()}"],
        forward=forward,
        tail=soft if follows else [],
        places={"after": frozenset({"here"})},
    )


def _left_off(kit: Kit) -> Draft:
    """An evaluation switches gradients off for good."""
    if kit.axes.place == "no_grad":
        raise Impossible("a block ends by itself")
    loss_setup, loss = kit.loss("$out", "$y")
    call = "torch.set_grad_enabled" if kit.axes.place == "set" else "torch.autograd.set_grad_enabled"
    text = [
        "def evaluate($model, $batches):",
        f"    {call}(False)",
        "    $model.eval()",
        "    error = 0.0",
        "    for $x, $y in $batches:",
        "        error += F.mse_loss($model($x), $y).item()",
        "    $model.train()",
        f"    ⟦here?{call}(True)⟧",
        "    return error / len($batches)",
    ]
    return assemble(
        kit,
        kit.update(),
        [kit.network(), Definition("engine", "\n".join(text))],
        title="The evaluation after an epoch leaves gradients off",
        notes="Right: switch them on at the end of the evaluation; or evaluate under no_grad.",
        setup=loss_setup,
        forward=["$out = $model($x)", f"$loss = {loss}"],
        close=["$error = evaluate($model, $batches)"],
        places={"after": frozenset({"here"})},
    )


def _decorated(kit: Kit) -> Draft:
    """The decorator of the evaluation stands on a function that the training calls."""
    if kit.axes.place != "no_grad":
        raise Impossible("one decorator")
    loss_setup, loss = kit.loss("$out", "$y")
    helper = kit.axes.scenario == "decorated-helper"
    text = [
        "⟦here?¦@torch.no_grad()⟧",
        "def predict($model, $x):",
        "    $out = $model($x)",
        "    return $out - 0.1 * $out.mean()",
        "",
        "",
        "@torch.no_grad()",
        "def evaluate($model, $batches):",
        f"    return sum(F.mse_loss({'predict($model, $x)' if helper else '$model($x)'}, $y) for $x, $y in $batches)",
    ]
    if helper:
        classes = [kit.network(), Definition("engine", "\n".join(text))]
    else:
        methods = ["⟦here?¦@torch.no_grad()⟧", "def readout(self, features):"]
        methods += ["    return self.head(features) - 0.1", "", *(_evaluation() if kit.chance("evaluation") else [])]
        classes = [kit.network("self.readout(features)", methods=methods)]
    out = "predict($model, $x)" if helper else "$model($x)"
    return assemble(
        kit,
        kit.update(),
        classes,
        title="A function that the training calls is decorated with no_grad",
        notes="Right: drop the decorator. Wrong: loss.requires_grad_().",
        setup=loss_setup,
        forward=[f"$out = {out}", f"$loss = {loss}"],
        close=["$error = evaluate($model, $batches)"] if helper else [],
        places={"after": frozenset({"here"})},
    )


def _evaluation() -> list[str]:
    return ["@torch.no_grad()", "def error(self, $x, $y):", "    return F.mse_loss(self($x), $y).item()", ""]
