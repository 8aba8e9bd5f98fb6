"""Something made of learnable parameters is made once, where every step needs it anew."""

from __future__ import annotations

from dataclasses import dataclass

from ..axes import Impossible
from ..draft import Draft
from ..kit import Kit
from .common import assemble, box_of, defined, marked

HOLDERS = ("loop", "epoch", "init", "none-check", "memo", "lru-cache", "cached-property")


@dataclass(frozen=True)
class _Made:
    """``init`` declares the parameters on the model ``{m}``, ``made`` is the tensor, ``use`` applies it."""

    init: str
    made: str
    use: str


_KINDS = {
    "mixing": _Made(
        "self.logits = nn.Parameter(torch.randn(hidden))",
        "torch.softmax({m}.logits, dim=0)",
        "features = features * {t} * features.size(1)",
    ),
    "normalised": _Made(
        "self.vectors = nn.Parameter(torch.randn(hidden, hidden))",
        "F.normalize({m}.vectors, dim=1)",
        "features = torch.tanh(features @ {t})",
    ),
    "adjacency": _Made(
        "self.nodes = nn.Parameter(torch.randn(hidden, 4))",
        "torch.softmax(torch.relu({m}.nodes @ {m}.nodes.t()), dim=1)",
        "features = features @ {t}",
    ),
    "positions": _Made(
        "self.position = nn.Linear(1, hidden)",
        "torch.tanh({m}.position(torch.linspace(-1, 1, 4).unsqueeze(1)))",
        "features = features + (features @ {t}.t()).softmax(dim=1) @ {t}",
    ),
    "classes": _Made(
        "self.classes = nn.Embedding(5, hidden)",
        "torch.tanh({m}.classes(torch.arange(5))).mean(dim=0)",
        "features = features + {t}",
    ),
}


def built_once(kit: Kit) -> Draft:
    """The draft, by where the thing is kept."""
    made = _KINDS[kit.axes.scenario]
    if kit.axes.holder in ("loop", "epoch"):
        return _kept_by_loop(kit, made)
    return _kept_by_model(kit, made)


def _kept_by_loop(kit: Kit, made: _Made) -> Draft:
    if kit.axes.layout in ("step-function", "closure", "global"):
        raise Impossible("the statement would move into another function")
    box = box_of(kit, "made")
    [read] = box.read("$table")
    statement = f"$table = {box.pack([made.made.format(m='$model')])}"
    once = marked("here", [statement], otherwise=True)
    loss_setup, loss = kit.loss("$out", "$y")
    class_ = kit.network(extra=[made.init], then=[made.use.format(t="table")], takes="$x, table")
    each_epoch = kit.axes.holder == "epoch"
    if kit.axes.layout == "epoch-function" and not each_epoch:
        raise Impossible("the statement would move into another function")
    if "helper" in kit.axes.styles:
        raise Impossible("the statement would move into another function")
    return assemble(
        kit,
        kit.update(),
        [*defined(box), class_],
        title="A tensor made of parameters is made before the loop and used in it",
        notes="Right: make it in every step. Wrong: detach it, its parameters would never learn.",
        setup=[*loss_setup, *([] if each_epoch else once)],
        epoch=once if each_epoch else [],
        forward=[*marked("here", [statement]), f"$out = $model($x, {read})", f"$loss = {loss}"],
        places={"after": frozenset({"here"})},
    )


def _kept_by_model(kit: Kit, made: _Made) -> Draft:
    if kit.axes.container != "bare":
        raise Impossible("the model keeps the tensor")
    value = made.made.format(m="self")
    extra, then, methods = [made.init], [], []
    table = "table"
    holder = kit.axes.holder
    if holder == "init":
        extra += [f"⟦here?¦self.table = {value}⟧"]
        then = [f"⟦here?table = {value}⟧"]
        table = "⟦here?¦self.⟧table"
    elif holder == "none-check":
        extra += ["⟦here?¦self.kept = None⟧"]
        then = [
            "⟦here?¦if self.kept is None:⟧",
            f"⟦here?¦    self.kept = {value}⟧",
            f"table = ⟦here?{value}¦self.kept⟧",
        ]
    elif holder == "memo":
        extra += ["⟦here?¦self.memo = {}⟧"]
        then = [
            "⟦here?¦size = features.size(1)⟧",
            "⟦here?¦if size not in self.memo:⟧",
            f"⟦here?¦    self.memo[size] = {value}⟧",
            f"table = ⟦here?{value}¦self.memo[size]⟧",
        ]
    elif holder == "lru-cache":
        methods = ["⟦here?¦@functools.lru_cache(maxsize=None)⟧", "def make_table(self):", f"    return {value}", ""]
        then = ["table = self.make_table()"]
    else:
        methods = ["@⟦here?property¦functools.cached_property⟧", "def table(self):", f"    return {value}", ""]
        table = "self.table"
    loss_setup, loss = kit.loss("$out", "$y")
    class_ = kit.network(extra=extra, then=[*then, made.use.format(t=table)], methods=methods)
    return assemble(
        kit,
        kit.update(),
        [class_],
        title="The model keeps a tensor made of its parameters from the first step on",
        notes="Right: make it in every forward. Wrong: detach it, its parameters would never learn.",
        setup=loss_setup,
        forward=["$out = $model($x)", f"$loss = {loss}"],
        places={"after": frozenset({"here"})},
    )
