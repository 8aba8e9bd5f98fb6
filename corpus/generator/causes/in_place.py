"""A value that a backward needs is changed after it was saved."""

from __future__ import annotations

from ..axes import Impossible
from ..draft import Draft
from ..kit import Kit
from .common import assemble

_CHANGES = {
    "scaled": ("gate = gate * self.strength", "gate *= self.strength"),
    "scaled-method": ("gate = gate.mul(self.strength)", "gate.mul_(self.strength)"),
    "shifted": ("gate = gate + 0.1", "gate += 0.1"),
    "clamped": ("gate = gate.clamp(0.1, 0.8)", "gate.clamp_(0.1, 0.8)"),
    "masked": ("gate = gate.masked_fill(gate < 0.3, 0.0)", "gate[gate < 0.3] = 0.0"),
    "filled": ("gate = gate.masked_fill(gate < 0.3, 0.0)", "gate.masked_fill_(gate < 0.3, 0.0)"),
}
CHANGES = tuple(_CHANGES)


def in_place(kit: Kit) -> Draft:
    """The draft, by what is changed."""
    if kit.axes.scenario == "gate":
        return _gate(kit)
    if kit.axes.scenario == "flag":
        return _flag(kit)
    return _reordered(kit)


def _gate(kit: Kit) -> Draft:
    """The output of an activation that saved it."""
    healthy, broken = _CHANGES[kit.axes.place]
    saved = kit.pick("saved", ("torch.sigmoid(self.gate(features))", "torch.softmax(self.gate(features), dim=1)"))
    loss_setup, loss = kit.loss("$out", "$y")
    extra = ["self.gate = nn.Linear(hidden, hidden)"]
    if "strength" in healthy:
        extra.append("self.strength = 0.7")
    then = [f"gate = {saved}", f"⟦here?{healthy}¦{broken}⟧", "features = features * gate"]
    return assemble(
        kit,
        kit.update(),
        [kit.network(extra=extra, then=then)],
        title="A gate is changed in place after its activation has saved it",
        notes="Right: out of place. Wrong: through .data, which hides the change from autograd.",
        setup=loss_setup,
        forward=["$out = $model($x)", f"$loss = {loss}"],
        places={"after": frozenset({"here"})},
    )


def _flag(kit: Kit) -> Draft:
    """An activation is told to work in place on what another saved."""
    if kit.axes.place != CHANGES[0]:
        raise Impossible("one kind")
    form = kit.pick(
        "flag",
        (
            "features = F.leaky_relu(torch.tanh(features), 0.2⟦here?¦, inplace=True⟧)",
            "features = F.relu(torch.sigmoid(features)⟦here?¦, inplace=True⟧)",
            "features = F.elu(torch.tanh(self.gate(features))⟦here?¦, inplace=True⟧)",
            "features = F.dropout(torch.exp(-features.pow(2)), 0.2, self.training⟦here?¦, inplace=True⟧)",
        ),
    )
    loss_setup, loss = kit.loss("$out", "$y")
    return assemble(
        kit,
        kit.update(),
        [kit.network(extra=["self.gate = nn.Linear(hidden, hidden)"], then=[form])],
        title="An activation works in place on the output of another, which has saved it",
        notes="Right: drop inplace=True.",
        setup=loss_setup,
        forward=["$out = $model($x)", f"$loss = {loss}"],
        places={"after": frozenset({"here"})},
    )


def _reordered(kit: Kit) -> Draft:
    """The actor's loss is made before the critic's step and goes backward after it."""
    if kit.body.shape != "vector" or kit.axes.place != CHANGES[0] or kit.axes.model == "linear":
        raise Impossible("the critic takes vectors")
    if kit.axes.optimizer in ("manual", "two") or "scheduler" in kit.axes.extras:
        raise Impossible("each network has an optimizer of its own")
    actor_loss = "$loss = -$model(torch.cat([$x[:, 1:], $actor($x)], dim=1)).mean()"
    update = kit.update(["$critic_loss.backward()"])
    loss_setup, loss = kit.loss("$model($x)", "$y")
    return assemble(
        kit,
        update,
        [kit.network()],
        title="The actor's loss is made before the critic's step and goes backward after it",
        notes="Right: make the actor's loss after the critic's step. Wrong: to detach the critic's value.",
        setup=[
            *loss_setup,
            f"$actor = nn.Linear({kit.inputs}, 1)",
            "$actor_optimizer = torch.optim.SGD($actor.parameters(), lr=0.05)",
        ],
        forward=[f"$critic_loss = {loss}", f"⟦here?¦{actor_loss}⟧"],
        tail=[
            f"⟦here?{actor_loss}⟧",
            "$actor_optimizer.zero_grad()",
            "$loss.backward()",
            "$actor_optimizer.step()",
        ],
        places={"after": frozenset({"here"})},
    )
