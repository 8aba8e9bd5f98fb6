"""Two networks against one another: what the first loss sends into the other network is thrown away."""

from __future__ import annotations

from ..axes import Impossible
from ..draft import Definition, Draft
from ..kit import Kit
from .common import box_of, defined


def adversarial(kit: Kit) -> Draft:
    """The draft, by whose turn comes first."""
    if kit.body.shape != "vector" or kit.axes.model == "linear":
        raise Impossible("the critic takes vectors")
    if kit.axes.optimizer in ("manual", "two"):
        raise Impossible("each network has an optimizer of its own")
    box = box_of(kit, "fake")
    [fake] = box.read("$fake")
    kind = {"sgd": "SGD", "momentum": "RMSprop", "adam": "Adam", "adamw": "AdamW"}[kit.axes.optimizer]
    form = kit.pick("form", ("bce", "hinge", "square"))
    d_loss, g_loss = {
        "bce": (
            "F.softplus(-$real_score).mean() + F.softplus($fake_score).mean()",
            "F.softplus(-$critic({f})).mean()",
        ),
        "hinge": ("F.relu(1 - $real_score).mean() + F.relu(1 + $fake_score).mean()", "-$critic({f}).mean()"),
        "square": ("(($real_score - 1) ** 2).mean() + ($fake_score**2).mean()", "(($critic({f}) - 1) ** 2).mean()"),
    }[form]
    clip = ["nn.utils.clip_grad_norm_($critic.parameters(), 1.0)"] if "clip" in kit.axes.extras else []
    zero_late = kit.chance("zero-late")
    make = [f"$fake = {box.pack([f'$generator(torch.randn({kit.size}, 3))'])}"]
    critic_turn = [
        "$real_score = $critic($x)",
        f"$fake_score = $critic({fake}⟦here?.detach()⟧)",
        *([] if zero_late else ["$critic_optimizer.zero_grad()"]),
        f"$critic_loss = {d_loss}",
        *(["$critic_optimizer.zero_grad()"] if zero_late else []),
        "$critic_loss.backward()",
        *clip,
        "$critic_optimizer.step()",
    ]
    generator_turn = [
        f"$loss = {g_loss.format(f=fake)}",
        "$generator_optimizer.zero_grad()",
        "$loss.backward()",
        "$generator_optimizer.step()",
    ]
    if kit.axes.scenario == "critic-first":
        forward, update = [*make, *critic_turn], generator_turn
    elif kit.axes.scenario == "generator-first":
        forward, update = [*make, *generator_turn], critic_turn
    else:
        forward = [*make, "for _ in range(2):", *(f"    {line}" for line in critic_turn)]
        update = generator_turn
    close = ["$schedule.step()"] if "scheduler" in kit.axes.extras else []
    schedule = "$schedule = torch.optim.lr_scheduler.StepLR($critic_optimizer, 2)"
    style = kit.data_style()
    data = kit.data("vector")
    text = [
        "class Generator(nn.Module):",
        "    def __init__(self, noise, hidden, outputs):",
        "        super().__init__()",
        "        self.layers = nn.Sequential(nn.Linear(noise, hidden), nn.Tanh(), nn.Linear(hidden, outputs))",
        "",
        "    def forward(self, noise):",
        "        return self.layers(noise)",
    ]
    return Draft(
        title=f"{kit.theme} A critic's loss runs back into the generator, whose gradient from it is thrown away",
        notes="Right: detach the fake for the critic only. Wrong: to detach it where it is made, or for the generator.",
        definitions=[
            Definition("model", "\n".join(text)),
            *defined(box),
            kit.network(name="Critic"),
            Definition("data", data.function(style)),
        ],
        data=data.statements(style),
        setup=[
            f"$generator = Generator(3, {kit.hidden}, {kit.inputs})",
            f"$critic = {kit.make(1, name='Critic')}",
            f"$generator_optimizer = torch.optim.{kind}($generator.parameters(), lr=0.01)",
            f"$critic_optimizer = torch.optim.{kind}($critic.parameters(), lr=0.01)",
            *([schedule] if close else []),
        ],
        forward=forward,
        update=update,
        close=close,
        loop="for $x, _ in $batches:",
        variants={"after": frozenset({"here"})},
        epochs=3,
    )
