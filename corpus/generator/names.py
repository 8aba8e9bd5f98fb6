"""Names that people give: a few for each variable, in several languages, never the same for two of them."""

from __future__ import annotations

import random
import re

_ENGLISH = {
    "x": ("x", "inputs", "batch", "readings"),
    "y": ("y", "targets", "labels", "wanted"),
    "out": ("out", "output", "prediction", "pred"),
    "loss": ("loss",),
    "state": ("state", "hidden", "memory", "carry"),
    "h": ("h", "hx", "hidden_state"),
    "c": ("c", "cx", "cell_state"),
    "features": ("features", "feats", "z", "embedding"),
    "model": ("model", "net", "network"),
    "optimizer": ("optimizer", "opt", "optimiser"),
    "batches": ("batches", "loader", "data", "stream"),
    "epoch": ("epoch",),
    "previous": ("previous", "prev", "last_features"),
    "queue": ("queue", "bank", "history"),
    "average": ("average", "center", "running_mean"),
    "total": ("total", "running_loss", "total_loss", "cumulative"),
    "losses": ("losses", "terms", "loss_history"),
    "fake": ("fake", "generated", "samples"),
    "criterion": ("criterion", "loss_fn"),
    "table": ("table", "context", "codes"),
}
_OTHERS = {
    "german": {
        "x": "eingabe",
        "y": "ziel",
        "out": "ausgabe",
        "loss": "verlust",
        "state": "zustand",
        "h": "gedächtnis",
        "features": "merkmale",
        "total": "summe_über_alles",
        "previous": "vorherige",
        "average": "mittel",
        "fake": "fälschung",
    },
    "russian": {
        "x": "вход",
        "y": "цель",
        "out": "выход",
        "loss": "потеря",
        "state": "состояние",
        "features": "признаки",
        "total": "сумма",
        "queue": "очередь",
        "table": "таблица",
    },
    "greek": {
        "x": "χ",
        "y": "ψ",
        "out": "ŷ",
        "loss": "λ_",
        "state": "σ",
        "h": "η",
        "c": "κ",
        "features": "φ",
        "average": "μ",
        "total": "Σ",
        "table": "θ",
    },
    "chinese": {
        "x": "输入",
        "y": "目标",
        "out": "输出",
        "loss": "损失",
        "state": "状态",
        "features": "特征",
        "total": "总损失",
        "model": "模型",
        "queue": "队列",
    },
    "french": {
        "x": "entrée",
        "y": "cible",
        "out": "prédit",
        "loss": "perte",
        "state": "état",
        "previous": "précédent",
        "features": "caractères",
        "batches": "données",
        "average": "moyenne",
    },
}
_VARIABLE = re.compile(r"\$(\w+)")


class Names:
    """Resolves ``$name``; a key without a choice is its own name."""

    def __init__(self, rng: random.Random, other_alphabet: bool) -> None:
        words = _OTHERS[rng.choice(sorted(_OTHERS))] if other_alphabet else {}
        self.chosen: dict[str, str] = {}
        taken: set[str] = set()
        for key, options in _ENGLISH.items():
            free = [option for option in options if option not in taken]
            name = words.get(key) or rng.choice(free)
            self.chosen[key] = name
            taken.add(name)

    def __getitem__(self, key: str) -> str:
        return self.chosen.get(key, key)

    def resolve(self, text: str, attributes: frozenset[str] = frozenset(), owner: str = "self") -> str:
        """The text with its variables named; those in ``attributes`` are attributes of ``owner``."""

        def name(found: re.Match[str]) -> str:
            return (f"{owner}." if found[1] in attributes else "") + self[found[1]]

        return _VARIABLE.sub(name, text)
