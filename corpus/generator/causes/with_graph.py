"""Data that a network made came with the network's graph, and is used more than once."""

from __future__ import annotations

from ..axes import Impossible
from ..draft import Definition, Draft
from ..kit import Kit
from .common import assemble, box_of, defined

PLACES = ("detach", "no_grad")


def with_graph(kit: Kit) -> Draft:
    """The draft, by what is made with a graph."""
    return {
        "context": _context,
        "features": _features,
        "teacher": _teacher,
        "old-outputs": _old_outputs,
        "ratio": _ratio,
        "replay": _replay,
        "dataset": _dataset,
    }[kit.axes.scenario](kit)


def _guarded(lines: list[str]) -> list[str]:
    """The lines in a block under no_grad where that guard is present."""
    return ["⟦no_grad?with torch.no_grad():⟧", *(f"⟦no_grad?    ⟧{line}" for line in lines)]


def _places(kit: Kit) -> dict[str, frozenset[str]]:
    other = PLACES[1 - PLACES.index(kit.axes.place)]
    return {"after": frozenset({kit.axes.place}), f"after-{other.replace('_', '-')}": frozenset({other})}


def _frozen(kit: Kit, made: list[str], name: str = "$encoder") -> tuple[list[str], list[str]]:
    """Definitions and set-up of a network that no optimizer holds, and of what it makes."""
    text = [
        "class Encoder(nn.Module):",
        "    def __init__(self, inputs, hidden):",
        "        super().__init__()",
        "        self.layers = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden))",
        "",
        "    def forward(self, $x):",
        "        return torch.tanh(self.layers($x))",
    ]
    return ["\n".join(text)], [f"{name} = Encoder({kit.inputs}, {kit.hidden})", *_guarded(made)]


def _context(kit: Kit) -> Draft:
    box = box_of(kit, "context", ("bare", "tuple", "list", "dict", "namedtuple", "dataclass", "object"))
    [read] = box.read("$table")
    value = f"$encoder(torch.randn(6, {kit.inputs})).mean(dim=0)⟦detach?.detach()⟧"
    texts, setup = _frozen(kit, [f"$table = {box.pack([value])}"])
    loss_setup, loss = kit.loss("$out", "$y")
    class_ = kit.network(then=["features = features * context"], takes="$x, context")
    return assemble(
        kit,
        kit.update(),
        [*(Definition("model", text) for text in texts), *defined(box), class_],
        title="The context that a frozen encoder makes once brings the encoder's graph along",
        notes="Right: make it without a graph; no optimizer holds the encoder.",
        setup=[*loss_setup, *setup],
        forward=[f"$out = $model($x, {read})", f"$loss = {loss}"],
        places=_places(kit),
    )


def _features(kit: Kit) -> Draft:
    if kit.body.shape != "vector" or kit.axes.container not in ("list", "dict", "bare"):
        raise Impossible("the encoder takes vectors")
    loss_setup, loss = kit.loss("$out", "$y")
    if kit.axes.container == "dict":
        made = "$codes = {i: $encoder($x)⟦detach?.detach()⟧ for i, ($x, _) in enumerate($batches)}"
        loop, reads = "for $i, (_, $y) in enumerate($batches):", ["$code = $codes[$i]"]
    elif kit.axes.container == "list":
        made = "$codes = [($encoder($x)⟦detach?.detach()⟧, $y) for $x, $y in $batches]"
        loop, reads = "for $code, $y in $codes:", []
    else:
        made = "$codes = torch.stack([$encoder($x) for $x, _ in $batches])⟦detach?.detach()⟧"
        loop, reads = "for $i, (_, $y) in enumerate($batches):", ["$code = $codes[$i]"]
    texts, setup = _frozen(kit, [made.replace("$x", "x").replace("($x, _)", "(x, _)").replace("$y", "y")])
    return assemble(
        kit,
        kit.update(),
        [*(Definition("model", text) for text in texts), kit.network()],
        title="The features of a frozen encoder are computed once, with the encoder's graph",
        notes="Right: compute them without a graph; no optimizer holds the encoder.",
        setup=[*loss_setup, *setup],
        forward=[*reads, "$out = $model($code)", f"$loss = {loss}"],
        places=_places(kit),
        loop=loop,
        model=kit.make(inputs=kit.hidden),
    )


def _teacher(kit: Kit) -> Draft:
    if kit.axes.container not in ("list", "dict"):
        raise Impossible("one answer for each batch")
    if kit.axes.container == "dict":
        made = "$answers = {i: $teacher(x)⟦detach?.detach()⟧ for i, (x, _) in enumerate($batches)}"
    else:
        made = "$answers = [$teacher(x)⟦detach?.detach()⟧ for x, _ in $batches]"
    loss_setup, loss = kit.loss("$out", "$y")
    return assemble(
        kit,
        kit.update(),
        [kit.network()],
        title="The teacher's answers are computed once, with the teacher's graph",
        notes="Right: compute them without a graph; no optimizer holds the teacher.",
        setup=[*loss_setup, f"$teacher = {kit.make()}", *_guarded([made])],
        forward=["$out = $model($x)", f"$loss = {loss} + 0.5 * F.mse_loss($out, $answers[$i])"],
        places=_places(kit),
        loop="for $i, ($x, $y) in enumerate($batches):",
    )


def _old_outputs(kit: Kit) -> Draft:
    if kit.axes.container != "list":
        raise Impossible("one output for each batch")
    loss_setup, loss = kit.loss("$out", "$y")
    made = "$old = [$model(x)⟦detach?.detach()⟧ for x, _ in $batches]"
    return assemble(
        kit,
        kit.update(),
        [kit.network()],
        title="The outputs at the start of the epoch, to which the model is held, carry its graph",
        notes="Right: compute them without a graph. Wrong: to compute them in every step.",
        setup=loss_setup,
        epoch=_guarded([made]),
        forward=["$out = $model($x)", f"$loss = {loss} + 0.5 * F.mse_loss($out, $old[$i])"],
        places=_places(kit),
        loop="for $i, ($x, $y) in enumerate($batches):",
        epochs=3,
    )


def _ratio(kit: Kit) -> Draft:
    """Several updates on one rollout; the old log-probabilities and the advantages are constants in them."""
    if kit.axes.container != "bare":
        raise Impossible("no container here")
    update = kit.update()
    if update.before:
        raise Impossible("the gradients are cleared in the inner loop")
    made = [
        "$logits, $value = $model($x)",
        "$chosen = $y",
        "$old = F.log_softmax($logits, dim=1).gather(1, $chosen.unsqueeze(1)).squeeze(1)⟦detach?.detach()⟧",
        "$advantage = ($chosen.float() - $value.squeeze(1))⟦detach?.detach()⟧",
    ]
    inner = [
        "$logits, $value = $model($x)",
        "$new = F.log_softmax($logits, dim=1).gather(1, $chosen.unsqueeze(1)).squeeze(1)",
        "$ratio = torch.exp($new - $old)",
        "$surrogate = torch.min($ratio * $advantage, $ratio.clamp(0.8, 1.2) * $advantage)",
        "$loss = F.mse_loss($value.squeeze(1), $chosen.float()) - $surrogate.mean()",
        *update.after,
    ]
    class_ = kit.network("self.head(features), self.critic(features)", extra=["self.critic = nn.Linear(hidden, 1)"])
    draft = assemble(
        kit,
        update,
        [class_],
        title="The old log-probabilities and the advantages of several updates carry the graph of the rollout",
        notes="Right: both are constants of the updates. Wrong: to detach one of them only.",
        setup=[],
        forward=_guarded(made),
        places=_places(kit),
        classes_of_data=True,
        epochs=3,
    )
    loop = ["for _ in range(3):", *(f"    {line}" for line in inner)]
    return Draft(**{**draft.__dict__, "update": loop})


def _replay(kit: Kit) -> Draft:
    if kit.axes.container not in ("list", "deque"):
        raise Impossible("a buffer is a list or a deque")
    loss_setup, loss = kit.loss("$model($seen)", "$goal")
    buffer = "deque(maxlen=6)" if kit.axes.container == "deque" else "[]"
    made = ["$goal = $y + 0.9 * $model($x)⟦detach?.detach()⟧"]
    return assemble(
        kit,
        kit.update(),
        [kit.network()],
        title="The targets in the replay buffer carry the graph of the network that made them",
        notes="Right: targets are constants.",
        setup=[*loss_setup, f"$buffer = {buffer}", "$dice = random.Random(3)"],
        forward=[
            *_guarded(made),
            "$buffer.append(($x, $goal))",
            "$seen, $goal = $dice.choice($buffer)",
            f"$loss = {loss}",
        ],
        places=_places(kit),
    )


def _dataset(kit: Kit) -> Draft:
    """A Dataset that runs the encoder in its ``__init__``."""
    if kit.body.shape != "vector" or kit.axes.container != "bare":
        raise Impossible("the encoder takes vectors")
    texts, _ = _frozen(kit, [])
    rows = kit.size * kit.count
    body = [
        "$x = torch.randn(count, encoder.layers[0].in_features)",
        "self.features = encoder($x)⟦detach?.detach()⟧",
    ]
    dataset = [
        "class FeatureSet(Dataset):",
        "    def __init__(self, encoder, count):",
        f"        {body[0]}",
        *(f"        {line}" for line in _guarded(body[1:])),
        "        self.targets = torch.sin($x.sum(dim=1, keepdim=True))",
        "",
        "    def __len__(self):",
        "        return len(self.features)",
        "",
        "    def __getitem__(self, index):",
        "        return self.features[index], self.targets[index]",
    ]
    loss_setup, loss = kit.loss("$out", "$y")
    draft = assemble(
        kit,
        kit.update(),
        [*(Definition("model", text) for text in texts), kit.network()],
        title="A data set keeps the features of a frozen encoder, with the encoder's graph",
        notes="Right: compute them without a graph; no optimizer holds the encoder.",
        setup=loss_setup,
        forward=["$out = $model($x)", f"$loss = {loss}"],
        places=_places(kit),
        model=kit.make(1, inputs=kit.hidden),
        epochs=3,
    )
    data = [
        f"$encoder = Encoder({kit.inputs}, {kit.hidden})",
        f"$batches = DataLoader(FeatureSet($encoder, {rows}), batch_size={kit.size})",
    ]
    definitions = [*draft.definitions[:-1], Definition("data", "\n".join(dataset))]
    return Draft(**{**draft.__dict__, "definitions": definitions, "data": data})
