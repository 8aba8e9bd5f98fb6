"""A gradient goes into the loss and must be differentiated again; create_graph is what is taken out."""

from __future__ import annotations

from ..axes import Impossible
from ..draft import Draft
from ..kit import Kit
from .common import assemble

_KEEP = "⟦here?, create_graph=True⟧"


def first_order(kit: Kit) -> Draft:
    """The draft, by what the gradient is for."""
    return {"force": _force, "penalty": _penalty, "smooth": _smooth, "residual": _residual}[kit.axes.scenario](kit)


def _assemble(kit: Kit, forward: list[str], loss_setup: list[str], what: str) -> Draft:
    if kit.axes.model in ("gru", "lstm"):
        raise Impossible("no double backward")
    return assemble(
        kit,
        kit.update(),
        [kit.network()],
        title=f"{what} is a gradient, and the loss differentiates it again",
        notes="Right: create_graph=True. Wrong: to detach the gradient; retain_graph=True alone.",
        setup=loss_setup,
        forward=forward,
        places={"after": frozenset({"here"})},
    )


def _leaf(kit: Kit) -> list[str]:
    return kit.pick(
        "leaf",
        (["$point = $x.clone().requires_grad_()"], ["$point = $x.detach().clone()", "$point.requires_grad_(True)"]),
    )


def _gradient(kit: Kit, name: str, output: str, point: str, keep: str = _KEEP) -> str:
    """``name`` is the gradient of the sum of ``output``."""
    forms = (
        f"{name} = torch.autograd.grad({output}.sum(), {point}{keep})[0]",
        f"({name},) = torch.autograd.grad({output}, {point}, torch.ones_like({output}){keep})",
        f"[{name}] = torch.autograd.grad({output}.sum(), [{point}]{keep})",
    )
    return kit.pick(f"gradient/{name}", forms)


def _force(kit: Kit) -> Draft:
    """The field of a learned potential is fitted to a known one."""
    goal = "torch.sin($point.detach())"
    form = kit.pick("force-loss", ("F.mse_loss($force, {})", "($force - {}).abs().mean()"))
    lines = [*_leaf(kit), "$energy = $model($point)", _gradient(kit, "$force", "$energy", "$point")]
    return _assemble(kit, [*lines, f"$loss = {form.format(goal)}"], [], "The force")


def _penalty(kit: Kit) -> Draft:
    """A penalty on the slope of the output, added to the task's loss."""
    loss_setup, loss = kit.loss("$out", "$y")
    lines = [
        *_leaf(kit),
        "$out = $model($point)",
        _gradient(kit, "$slope", "$out", "$point"),
        "$penalty = (($slope.flatten(1).norm(dim=1) - 1) ** 2).mean()",
        f"$loss = {loss} + 0.1 * $penalty",
    ]
    return _assemble(kit, lines, loss_setup, "The slope of the output")


def _smooth(kit: Kit) -> Draft:
    """The slope of the loss itself is kept small."""
    loss_setup, loss = kit.loss("$model($point)", "$y")
    lines = [
        *_leaf(kit),
        f"$loss = {loss}",
        _gradient(kit, "$slope", "$loss", "$point"),
        "$loss = $loss + 0.2 * $slope.pow(2).sum()",
    ]
    return _assemble(kit, lines, loss_setup, "The slope of the loss")


def _residual(kit: Kit) -> Draft:
    """A differential equation of second order: one of its two gradients lacks the flag."""
    if kit.axes.model in ("relu", "linear", "signal"):
        raise Impossible("no second derivative")
    first_kept = kit.chance("first-kept")
    keep = ", create_graph=True"
    lines = [
        *_leaf(kit),
        "$u = $model($point)",
        _gradient(kit, "$slope", "$u", "$point", keep if first_kept else _KEEP),
        _gradient(kit, "$bend", "$slope", "$point", _KEEP if first_kept else keep),
        "$residual = $bend.flatten(1).sum(dim=1) + $u.sum(dim=1)",
        f"$loss = $residual.pow(2).mean(){' + ($u[0] - 1).pow(2).mean()' if kit.chance('boundary') else ''}",
    ]
    return _assemble(kit, lines, [], "The bend of the solution")
