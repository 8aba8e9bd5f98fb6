"""What every cause needs: a model, data, a criterion and an optimizer that fit the axes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from .axes import Axes, Impossible
from .data import Data
from .draft import Definition
from .models import BODIES, Body

_T = TypeVar("_T")

_THEMES = (
    ("LoadForecaster", "Forecast of a small grid's load from noisy meters."),
    ("SensorNet", "Calibration of a sensor array against a reference."),
    ("RainNet", "Nowcast of rain from the last radar frames."),
    ("DemandModel", "Daily demand of a shop, learned as the days come in."),
    ("VoiceTagger", "Tags for short pieces of audio."),
    ("GlucosePredictor", "Glucose of a patient an hour ahead."),
    ("OrbitModel", "Correction of an orbit from tracking residuals."),
    ("TrafficModel", "Travel times on a ring road."),
    ("ReviewScorer", "Scores of short reviews from their embeddings."),
    ("PlantModel", "Soft sensor of a chemical plant."),
    ("StrideNet", "Phase of a walking robot's stride."),
    ("Recommender", "Ratings of items that users have not seen."),
)


@dataclass(frozen=True)
class Update:
    """``setup`` makes the optimizer; ``before`` comes first in a step, ``after`` follows the loss."""

    setup: list[str]
    before: list[str]
    after: list[str]
    close: list[str]
    by_hand: bool


class Kit:
    """The common parts of one program. Small choices depend on their topic alone."""

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.class_name, self.theme = self.pick("theme", _THEMES)
        self.inputs = self.pick("inputs", (3, 4, 6, 8))
        self.hidden = self.pick("hidden", (8, 12, 16))
        self.outputs = self.pick("outputs", (1, 2, 3))
        self.size = self.pick("size", (4, 8, 16))
        self.count = self.pick("count", (4, 5, 6))
        self.epochs = self.pick("epochs", (4, 5, 6))

    def rng(self, topic: str) -> random.Random:
        return self.axes.rng(topic)

    def pick(self, topic: str, options: Sequence[_T]) -> _T:
        return self.rng(topic).choice(options)

    def chance(self, topic: str, probability: float = 0.5) -> bool:
        return self.rng(topic).random() < probability

    @property
    def body(self) -> Body:
        return BODIES[self.axes.model]

    def data(self, shape: str, classes: bool = False, outputs: int = 0) -> Data:
        outputs = outputs or (max(self.outputs, 2) if classes else self.outputs)
        return Data(shape, self.inputs, outputs, self.size, self.count, classes)

    def data_style(self, *allowed: str) -> str:
        return self.pick("data-style", allowed or ("list", "generator", "loader"))

    def network(
        self,
        returns: str = "self.head(features)",
        name: str = "",
        extra: Sequence[str] = (),
        then: Sequence[str] = (),
        takes: str = "$x",
        methods: Sequence[str] = (),
    ) -> Definition:
        """The class of a feed-forward model that takes ``takes`` and returns ``returns``.

        ``extra`` lines come last in ``__init__``; ``then`` lines follow the features in ``forward``.
        """
        drop = "dropout" in self.axes.extras
        if drop:
            extra, then = [*extra, "self.drop = nn.Dropout(0.1)"], ["features = self.drop(features)", *then]
        encode = self.chance("encode-method")
        features = ["features = self.encode($x)"] if encode else list(self.body.forward)
        lines = [
            f"class {name or self.class_name}(nn.Module):",
            "    def __init__(self, inputs, hidden, outputs):",
            "        super().__init__()",
            *(f"        {line}" for line in (*self.body.init, "self.head = nn.Linear(hidden, outputs)", *extra)),
            "",
        ]
        if encode:
            lines += ["    def encode(self, $x):", *(f"        {line}" for line in self.body.forward)]
            lines += ["        return features", ""]
        lines += [f"    {line}" if line else line for line in methods]
        lines += [f"    def forward(self, {takes}):", *(f"        {line}" for line in (*features, *then))]
        return Definition("model", "\n".join([*lines, f"        return {returns}"]))

    def make(self, outputs: int = 0, name: str = "", inputs: int = 0) -> str:
        """The call that makes the model."""
        return f"{name or self.class_name}({inputs or self.inputs}, {self.hidden}, {outputs or self.outputs})"

    def loss(self, out: str, y: str, classes: bool = False) -> tuple[list[str], str]:
        """Set-up lines and the expression of the loss."""
        if classes:
            forms = ("F.cross_entropy({}, {})", "$criterion({}, {})")
            module = "nn.CrossEntropyLoss()"
        else:
            forms = ("F.mse_loss({}, {})", "$criterion({}, {})", "(({} - {}) ** 2).mean()", "F.smooth_l1_loss({}, {})")
            module = self.pick("loss-module", ("nn.MSELoss()", "nn.SmoothL1Loss()", "nn.L1Loss()"))
        form = self.pick("loss-form", forms)
        return ([f"$criterion = {module}"] if "$criterion" in form else []), form.format(out, y)

    def update(self, backward: Sequence[str] = ("$loss.backward()",), model: str = "$model") -> Update:
        """Zero, backward and step by the optimizer axis, for all parameters of ``model``."""
        kind = self.axes.optimizer
        setup, zero, step = _optimizers(kind, model, self.pick("rate", ("0.01", "0.02", "0.05")))
        if kind == "manual" and self.chance("through-data"):
            step = [
                f"for parameter in {model}.parameters():",
                "    if parameter.grad is not None:",
                f"        parameter.data -= {self.pick('rate', ('0.01', '0.02', '0.05'))} * parameter.grad",
            ]
        close: list[str] = []
        if "scheduler" in self.axes.extras:
            if kind == "manual":
                raise Impossible("a scheduler needs an optimizer")
            setup.append("$scheduler = torch.optim.lr_scheduler.StepLR($optimizer, step_size=2, gamma=0.7)")
            close.append("$scheduler.step()")
        clip = [f"nn.utils.clip_grad_norm_({model}.parameters(), 1.0)"] if "clip" in self.axes.extras else []
        early = self.chance("zero-first")
        return Update(
            setup,
            zero if early else [],
            [*([] if early else zero), *backward, *clip, *step],
            close,
            kind == "manual",
        )


def _optimizers(kind: str, model: str, rate: str) -> tuple[list[str], list[str], list[str]]:
    """Set-up, zeroing and stepping of one kind of optimizer over all parameters of ``model``."""
    if kind == "manual":
        step = [
            "with torch.no_grad():",
            f"    for parameter in {model}.parameters():",
            "        if parameter.grad is not None:",
            f"            parameter -= {rate} * parameter.grad",
        ]
        return [], [f"{model}.zero_grad()"], step
    if kind == "two":
        setup = [
            f"$optimizer = torch.optim.Adam([p for n, p in {model}.named_parameters() if 'head' not in n], lr={rate})",
            f"$head_optimizer = torch.optim.SGD({model}.head.parameters(), lr={rate})",
        ]
        return (
            setup,
            ["$optimizer.zero_grad()", "$head_optimizer.zero_grad()"],
            ["$optimizer.step()", "$head_optimizer.step()"],
        )
    call = {
        "sgd": f"SGD({model}.parameters(), lr={rate})",
        "momentum": f"SGD({model}.parameters(), lr={rate}, momentum=0.9)",
        "adam": f"Adam({model}.parameters(), lr={rate})",
        "adamw": f"AdamW({model}.parameters(), lr={rate}, weight_decay=1e-3)",
    }[kind]
    return [f"$optimizer = torch.optim.{call}"], ["$optimizer.zero_grad()"], ["$optimizer.step()"]
