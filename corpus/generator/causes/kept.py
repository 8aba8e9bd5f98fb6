"""Features, outputs or averages of one step are used by a later one; what is taken out is their detach."""

from __future__ import annotations

from dataclasses import replace

from ..axes import Impossible
from ..draft import Definition, Draft
from ..kit import Kit
from .common import assemble, box_of, defined, marked, variants

PLACES = ("store", "end", "use")


def kept(kit: Kit) -> Draft:
    """The draft, by what is kept."""
    return {
        "previous": _previous,
        "average": _average,
        "queue": _queue,
        "table": _table,
        "feedback": _feedback,
        "hook": _hook,
        "generator": _generator,
    }[kit.axes.scenario](kit)


def _assemble(
    kit: Kit,
    classes: list[Definition],
    init: list[str],
    forward: list[str],
    tail: list[str],
    places: set[str],
    what: str,
    inputs: int = 0,
) -> Draft:
    update = kit.update()
    loss_setup, loss = kit.loss("$out", "$y")
    early = kit.chance("store-early")
    return assemble(
        kit,
        update,
        classes,
        title=f"{what} of one step serves the next with its graph",
        notes=f"Right: detach it ({', '.join(sorted(places))}). Wrong: to forget it.",
        setup=[*loss_setup, *init],
        forward=[*(line.replace("LOSS", loss) for line in forward), *(tail if early else [])],
        tail=[] if early else tail,
        places=variants(kit, sorted(places)),
        model=kit.make(inputs=inputs),
    )


def _previous(kit: Kit) -> Draft:
    weight = kit.pick("weight", ("0.1", "0.05", "0.2"))
    if kit.axes.holder == "model":
        if kit.axes.place == "end":
            raise Impossible("the model keeps it")
        box = box_of(kit, "features")
        init = f"self.past = {box.pack([f'torch.zeros({kit.size}, hidden)'])}"
        [read] = box.read("self.past")
        keep = [
            f"drift = F.mse_loss(features, {read}⟦use?.detach()⟧)",
            *box.store("self.past", ["features⟦store?.detach()⟧"]),
        ]
        class_ = kit.network("self.head(features), drift", extra=[init], then=keep)
        forward = ["$out, drift = $model($x)", f"$loss = LOSS + {weight} * drift"]
        classes = [*defined(box, "model"), class_]
        return _assemble(kit, classes, [], forward, [], {"store", "use"}, "What the model saw")
    box = box_of(kit, "features")
    [read] = box.read("$previous")
    forward = [
        "$out, $features = $model($x)",
        f"drift = F.mse_loss($features, {read}⟦use?.detach()⟧)",
        f"$loss = LOSS + {weight} * drift",
    ]
    init = [f"$previous = {box.pack([f'torch.zeros({kit.size}, {kit.hidden})'])}"]
    tail = [*box.store("$previous", ["$features⟦store?.detach()⟧"]), *marked("end", box.cut("$previous"))]
    classes = [*defined(box), kit.network("self.head(features), features")]
    return _assemble(kit, classes, init, forward, tail, {"store", "end", "use"}, "The features")


def _average(kit: Kit) -> Draft:
    if kit.axes.holder == "model":
        raise Impossible("the loop keeps the average")
    box = box_of(kit, "center")
    [read] = box.read("$average")
    rate = kit.pick("rate-of-average", ("0.9", "0.95", "0.8"))
    rest = f"{1 - float(rate):.2g}"
    forward = [
        "$out, $features = $model($x)",
        f"spread = ($features - {read}).pow(2).mean()",
        "$loss = LOSS + 0.1 * spread",
    ]
    init = [f"$average = {box.pack([f'torch.zeros({kit.hidden})'])}"]
    value = f"{rate} * {read} + {rest} * $features⟦store?.detach()⟧.mean(dim=0)"
    tail = [*box.store("$average", [value]), *marked("end", box.cut("$average"))]
    classes = [*defined(box), kit.network("self.head(features), features")]
    return _assemble(kit, classes, init, forward, tail, {"store", "end"}, "The moving average")


def _queue(kit: Kit) -> Draft:
    if kit.axes.container not in ("list", "deque", "dict") or kit.axes.place == "end" or kit.axes.depth > 2:
        raise Impossible("a queue is a list or a deque")
    queue = '$queue["features"]' if kit.axes.container == "dict" or kit.axes.depth == 2 else "$queue"
    empty = "[]" if kit.axes.container == "list" else "deque(maxlen=3)"
    init = [f"$queue = {empty if queue == '$queue' else '{' + chr(34) + 'features' + chr(34) + ': ' + empty + '}'}"]
    forward = [
        "$out, $features = $model($x)",
        "$loss = LOSS",
        f"if {queue}:",
        f"    $others = torch.cat({queue if empty == '[]' else f'list({queue})'})⟦use?.detach()⟧",
        "    $loss = $loss + 0.1 * torch.sigmoid($features @ $others.t()).mean()",
    ]
    tail = [f"{queue}.append($features⟦store?.detach()⟧)"]
    if empty == "[]":
        tail += [f"if len({queue}) > 3:", f"    {queue}.pop(0)"]
    if kit.axes.holder == "model":
        raise Impossible("the loop keeps the queue")
    class_ = kit.network("self.head(features), features")
    return _assemble(kit, [class_], init, forward, tail, {"store", "use"}, "The queue of features")


def _table(kit: Kit) -> Draft:
    if kit.axes.container not in ("bare", "dict") or kit.axes.depth > 1 or kit.axes.holder == "model":
        raise Impossible("a table is a tensor")
    table = '$table["rows"]' if kit.axes.container == "dict" else "$table"
    zeros = f"torch.zeros({2 * kit.size + 3}, {kit.hidden})"
    init = [f"$table = {zeros if table == '$table' else '{' + chr(34) + 'rows' + chr(34) + ': ' + zeros + '}'}"]
    forward = [
        f"$rows = torch.randperm({2 * kit.size + 3})[: len($x)]",
        f"$known = {table}[$rows]",
        "$out, $features = $model($x)",
        "$loss = LOSS + 0.1 * F.mse_loss($features, $known)",
    ]
    tail = [f"{table}[$rows] = $features⟦store?.detach()⟧"]
    class_ = kit.network("self.head(features), features")
    return _assemble(kit, [class_], init, forward, tail, {"store"}, "The table of features")


def _feedback(kit: Kit) -> Draft:
    if kit.body.shape != "vector" or kit.axes.holder == "model":
        raise Impossible("the output is no input of this model")
    box = box_of(kit, "output")
    [read] = box.read("$previous")
    forward = [
        f"$out = $model(torch.cat([$x, {read}⟦use?.detach()⟧], dim=1))",
        "$loss = LOSS",
    ]
    init = [f"$previous = {box.pack([f'torch.zeros({kit.size}, {kit.outputs})'])}"]
    tail = [*box.store("$previous", ["$out⟦store?.detach()⟧"]), *marked("end", box.cut("$previous"))]
    classes = [*defined(box), kit.network()]
    inputs = kit.inputs + kit.outputs
    return _assemble(kit, classes, init, forward, tail, {"store", "end", "use"}, "The output", inputs)


def _hook(kit: Kit) -> Draft:
    """A forward hook writes the output down; the loss compares it with the one before."""
    if kit.axes.container != "dict" or kit.axes.depth > 1 or kit.axes.holder == "model":
        raise Impossible("a hook writes into a dict")
    text = [
        "def watch(captured):",
        "    def hook(module, given, output):",
        '        captured["now"] = output',
        "",
        "    return hook",
    ]
    forward = [
        "$out = $model($x)",
        "$loss = LOSS",
        'if "before" in $captured:',
        '    $loss = $loss + 0.1 * F.mse_loss($captured["now"], $captured["before"]⟦use?.detach()⟧)',
    ]
    init = ["$captured = {}", "$model.head.register_forward_hook(watch($captured))"]
    tail = ['$captured["before"] = $captured["now"]⟦store?.detach()⟧']
    classes = [kit.network(), Definition("engine", "\n".join(text))]
    return _assemble(kit, classes, init, forward, tail, {"store", "use"}, "The output that a hook writes down")


def _generator(kit: Kit) -> Draft:
    """The state lives in a generator between two of its items."""
    if kit.axes.container != "bare" or kit.axes.depth > 1 or kit.axes.holder == "model":
        raise Impossible("the state is a local of the generator")
    if kit.axes.place == "end":
        raise Impossible("the generator keeps it")
    text = [
        "def rollout($model, $batches):",
        "    $previous = None",
        "    for $x, $y in $batches:",
        "        $out, $features = $model($x)",
        "        drift = torch.zeros(()) if $previous is None else F.mse_loss($features, $previous⟦use?.detach()⟧)",
        "        yield $out, $y, drift",
        "        $previous = $features⟦store?.detach()⟧",
    ]
    classes = [kit.network("self.head(features), features"), Definition("engine", "\n".join(text))]
    draft = _assemble(kit, classes, [], ["$loss = LOSS + 0.1 * $drift"], [], {"store", "use"}, "What a generator keeps")
    return replace(draft, loop="for $out, $y, $drift in rollout($model, $batches):")
