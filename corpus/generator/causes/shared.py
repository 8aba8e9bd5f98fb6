"""Two losses of one step go backward one after the other through the graph that they share."""

from __future__ import annotations

from ..axes import Impossible
from ..draft import Draft
from ..kit import Kit
from .common import assemble, variants

PLACES = ("sum", "retain")
_KEEP = "⟦retain?retain_graph=True⟧"


def shared(kit: Kit) -> Draft:
    """The draft, by how the losses are held."""
    if kit.axes.optimizer == "manual":
        raise Impossible("the losses are all that can be compared, and they differ by the repair")
    loss_setup, loss = kit.loss("$out", "$y")
    second, extra, returns = kit.pick(
        "second-loss",
        (
            (
                "F.mse_loss($guess, $y.roll(1, 0))",
                "self.other = nn.Linear(hidden, outputs)",
                "self.head(features), self.other(features)",
            ),
            ("0.1 * $guess.pow(2).mean()", "", "self.head(features), features"),
            (
                "F.smooth_l1_loss($guess, torch.zeros_like($guess))",
                "self.other = nn.Sequential(nn.Linear(hidden, 4), nn.Tanh(), nn.Linear(4, 1))",
                "self.head(features), self.other(features)",
            ),
        ),
    )
    forward = ["$out, $guess = $model($x)"]
    if kit.axes.scenario == "pair":
        if kit.axes.container != "bare":
            raise Impossible("two names")
        forward += [f"$first = {loss}", f"$second = {second}"]
        backward = [
            f"⟦sum?($first + $second).backward()¦$first.backward({_KEEP})⟧",
            "⟦sum?¦$second.backward()⟧",
        ]
        value = "$first.item()"
    else:
        place, first, values = {
            "list": (f"$losses = [{loss}, {second}]", "$losses[0]", "$losses"),
            "tuple": (f"$losses = ({loss}, {second})", "$losses[0]", "$losses"),
            "dict": (f'$losses = {{"task": {loss}, "side": {second}}}', '$losses["task"]', "$losses.values()"),
        }.get(kit.axes.container, ("", "", ""))
        if not place:
            raise Impossible("a container of losses")
        forward += [place]
        backward = [
            f"⟦sum?sum({values}).backward()¦for part in {values}:⟧",
            f"⟦sum?¦    part.backward({_KEEP})⟧",
        ]
        value = f"{first}.item()"
    return assemble(
        kit,
        kit.update(backward),
        [kit.network(returns, extra=[extra] if extra else [])],
        title="Two losses of a step go backward through the graph that they share",
        notes="Right: one backward of the sum; or keep the graph in the first. Wrong: to detach what they share.",
        setup=loss_setup,
        forward=forward,
        places=variants(kit, PLACES),
        value=value,
    )
