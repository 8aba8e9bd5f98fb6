"""A recurrent model's state goes from batch to batch; what is taken out is the detach between them."""

from __future__ import annotations

from ..axes import Impossible
from ..containers import Container
from ..draft import Definition, Draft
from ..kit import Kit
from ..models import CELLS, Cell
from .common import marked

PLACES = ("store", "use", "between", "end", "handover", "half")
TICKS = ("grucell", "rnncell", "elman", "lstmcell", "leaky", "stack", "attention")


class _Program:
    """One program in the making; the loop or the model packs the state."""

    def __init__(self, kit: Kit) -> None:
        self.kit, self.axes = kit, kit.axes
        self.cell: Cell = CELLS[self.axes.model]
        self.ticks = self.axes.scenario == "ticks"
        if self.ticks and self.axes.model not in TICKS:
            raise Impossible("the model has no single ticks")
        self.names = [f"${part}" for part in self.cell.parts]
        self.box = Container(
            self.axes.container, self.cell.parts, self.axes.depth, updates_in_place=kit.chance("in-place-update")
        )
        shape = "chunk" if self.ticks else self.cell.shape
        self.data = kit.data(shape)
        zero = self.cell.zero.format(size=kit.size, hidden=kit.hidden)
        self.zero = self.box.pack([zero] * len(self.names))
        self.pair = len(self.names) > 1 and kit.chance("pair")
        self.init = [line.format(*self.names) for line in self.cell.init]
        self.compute = [line.format(*self.names) for line in self.cell.forward]
        self.output = self.cell.output.format(*self.names)
        if "dropout" in self.axes.extras:
            self.init.append("self.drop = nn.Dropout(0.1)")
            self.output = f"self.drop({self.output})"

    def guarded(self, guard: str, values: list[str]) -> list[str]:
        """The values with a detach that stands where ``guard`` is present; half of it always does for ``half``."""
        if self.axes.place == "half" and len(values) > 1 and guard == self.half_at:
            spared = self.kit.rng("half").randrange(len(values))
            marks = [".detach()" if i == spared else "⟦half?.detach()⟧" for i in range(len(values))]
            return [value + mark for value, mark in zip(values, marks, strict=True)]
        return [f"{value}⟦{guard}?.detach()⟧" for value in values]

    @property
    def half_at(self) -> str:
        return "handover" if self.packed_by_model else "store"

    @property
    def packed_by_model(self) -> bool:
        return self.axes.holder == "loop" and self.kit.chance("packed-by-model", 0.4) and self.axes.container != "deque"

    def model_class(self, signature: str, lines: list[str], methods: list[str], fields: list[str]) -> Definition:
        text = [
            f"class {self.kit.class_name}(nn.Module):",
            "    def __init__(self, inputs, hidden, outputs):",
            "        super().__init__()",
            *(f"        {line}" for line in (*self.init, "self.head = nn.Linear(hidden, outputs)", *fields)),
            *methods,
            "",
            f"    def forward(self, {signature}):",
            *(f"        {line}" for line in lines),
        ]
        return Definition("model", "\n".join(text))


def recurrent(kit: Kit) -> Draft:
    """The draft, by what holds the state."""
    program = _Program(kit)
    if kit.axes.place == "half" and (len(program.names) < 2 or program.ticks):
        raise Impossible("half of one tensor")
    if kit.axes.holder == "loop":
        return _held_by_loop(program)
    return _held_by_model(program)


def _held_by_loop(program: _Program) -> Draft:
    kit, box, names = program.kit, program.box, program.names
    places = {"between", "end"} | (set() if program.ticks else {"handover"})
    from_none = False
    if program.packed_by_model:
        whole = program.axes.model in ("gru", "lstm") and program.axes.container in ("bare", "tuple") and box.depth == 1
        from_none = whole and kit.chance("from-none", 0.5) and program.axes.place in ("between", "end")
        if from_none:
            lines = ["output, $state = self.rnn($x, $state)", f"return self.head({program.output}), $state"]
            places -= {"handover"}
        else:
            kept = box.pack(program.guarded("handover", names), old="$state")
            lines = [*box.unpack("$state", names), *program.compute, f"return self.head({program.output}), {kept}"]
        signature, given, taken = "$x, $state", "$state", "$state"
    else:
        places |= {"store", "use"}
        signature, given, taken, lines = _by_parts(program)
    classes = [program.model_class(signature, lines, [], [])]
    if box.definition and not from_none:
        classes.insert(0, Definition("model", box.definition))
    make = f"$state = {'None' if from_none else program.zero}"
    cut = box.cut("$state") if not from_none else _cut_unless_none(box)
    forward = marked("between", cut)
    loss_setup, loss = kit.loss("$out", "$y")
    update = kit.update()
    if program.ticks:
        if not program.packed_by_model:
            forward += box.unpack("$state⟦use?⟧", names) if box.kind == "bare" else box.unpack("$state", names)
            forward = [line.replace("⟦use?⟧", "⟦use?.detach()⟧") for line in forward]
            places -= set() if box.kind == "bare" else {"use"}
            given = taken = f"({', '.join(names)})" if program.pair else ", ".join(names)
        setup, per_tick = kit.loss("$out", "$y[:, tick]")
        loss_setup = setup
        call = f"$model($x[:, tick], {given})"
        forward += [
            "$loss = 0.0",
            "for tick in range($x.size(1)):",
            f"    $out, {taken} = {call}",
            f"    $loss = $loss + {per_tick}",
        ]
    else:
        forward += [f"$out, {taken} = $model($x, {given})", f"$loss = {loss}"]
    tail = []
    if not program.packed_by_model and not (box.kind == "bare" and taken == "$state"):
        tail = box.store("$state", program.guarded("store", names))
    elif not program.packed_by_model:
        places -= {"store"}
    tail += marked("end", cut)
    late = kit.chance("store-late")
    forward, last = (forward, tail) if late else ([*forward, *tail], [])
    reset = kit.chance("reset-each-epoch", 0.4)
    return _finish(
        program,
        classes,
        setup=[f"$model = {kit.make()}", *update.setup, *loss_setup, *([] if reset else [make])],
        epoch=[make] if reset else [],
        forward=[*update.before, *forward],
        update=[*update.after, *last],
        close=update.close,
        places=places,
        by_hand=update.by_hand,
    )


def _by_parts(program: _Program) -> tuple[str, str, str, list[str]]:
    """The model takes and returns the bare parts: its signature, the arguments, the targets, and forward's lines."""
    box, names = program.box, program.names
    direct = box.kind == "bare" and program.axes.place != "store" and not program.ticks
    reads = ["$state"] if direct else box.read("$state")
    reads = [f"{read}⟦use?.detach()⟧" for read in reads]
    kept = program.guarded("handover", names) if not program.ticks else names
    if program.pair:
        signature = "$x, $pair"
        lines = [f"{', '.join(names)} = $pair", *program.compute]
        lines.append(f"return self.head({program.output}), ({', '.join(kept)})")
        return signature, f"({', '.join(reads)})", f"({', '.join(names)})", lines
    signature = f"$x, {', '.join(names)}"
    lines = [*program.compute, f"return self.head({program.output}), {', '.join(kept)}"]
    return signature, ", ".join(reads), "$state" if direct else ", ".join(names), lines


def _cut_unless_none(box: Container) -> list[str]:
    return ["if $state is not None:", *(f"    {line}" for line in box.cut("$state"))]


def _held_by_model(program: _Program) -> Draft:
    kit, box, names, axes = program.kit, program.box, program.names, program.axes
    places = {"store", "use", "between"}
    layers = axes.holder == "layers"
    if layers and (program.cell.shape != "vector" or axes.place == "between"):
        raise Impossible("layers are stacked by their features")
    fields, methods, lines = [], [], []
    classes = []
    if axes.holder == "buffer":
        if (axes.container != "bare" and len(names) == 1) or axes.depth > 1:
            raise Impossible("a buffer is a tensor")
        zero = program.cell.zero.format(size=kit.size, hidden="hidden")
        fields = [f'self.register_buffer("{part}_state", {zero})' for part in program.cell.parts]
        reads = [f"self.{part}_state" for part in program.cell.parts]
        stores = [f"{read} = {kept}" for read, kept in zip(reads, program.guarded("store", names), strict=True)]
        cut = [f"{read} = {read}.detach()" for read in reads]
        reset: list[str] = []
    else:
        if box.definition:
            classes.append(Definition("model", box.definition))
        reads = box.read("self.memory")
        stores = box.store("self.memory", program.guarded("store", names))
        cut = box.cut("self.memory")
        methods = ["", "    def reset(self):", f"        self.memory = {program.zero}"]
        reset = ["for layer in $model.layers:", "    layer.reset()"] if layers else ["$model.reset()"]
    methods += ["", "    def detach_memory(self):", *(f"        {line}" for line in cut)]
    lines += [f"{name} = {read}⟦use?.detach()⟧" for name, read in zip(names, reads, strict=True)]
    lines += [*program.compute, *stores, f"return {program.output if layers else f'self.head({program.output})'}"]
    if program.ticks:
        places = {"between"}
    if axes.place not in ("between",):
        methods = methods[: -len(cut) - 2]
        places -= {"between"}
    classes.append(program.model_class("$x", lines, methods, fields))
    if layers:
        layer = classes[-1].text.replace(f"class {kit.class_name}(", "class StatefulLayer(")
        layer = layer.replace("(self, inputs, hidden, outputs)", "(self, inputs, hidden)")
        layer = layer.replace("        self.head = nn.Linear(hidden, outputs)\n", "")
        classes[-1:] = [Definition("model", layer), _network_of_layers(kit)]
    loss_setup, loss = kit.loss("$out", "$y")
    update = kit.update()
    forward = ["⟦between?$model.detach_memory()⟧"] if "between" in places else []
    if program.ticks:
        loss_setup, per_tick = kit.loss("$out", "$y[:, tick]")
        forward += [
            "$loss = 0.0",
            "for tick in range($x.size(1)):",
            "    $out = $model($x[:, tick])",
            f"    $loss = $loss + {per_tick}",
        ]
    else:
        forward += ["$out = $model($x)", f"$loss = {loss}"]
    each_epoch = kit.chance("reset-each-epoch", 0.4)
    return _finish(
        program,
        classes,
        setup=[f"$model = {kit.make()}", *([] if each_epoch else reset), *update.setup, *loss_setup],
        epoch=reset if each_epoch else [],
        forward=[*update.before, *forward],
        update=update.after,
        close=update.close,
        places=places,
        by_hand=update.by_hand,
    )


def _network_of_layers(kit: Kit) -> Definition:
    text = [
        f"class {kit.class_name}(nn.Module):",
        "    def __init__(self, inputs, hidden, outputs):",
        "        super().__init__()",
        "        self.layers = nn.ModuleList([StatefulLayer(inputs, hidden), StatefulLayer(hidden, hidden)])",
        "        self.head = nn.Linear(hidden, outputs)",
        "",
        "    def forward(self, $x):",
        "        for layer in self.layers:",
        "            $x = layer($x)",
        "        return self.head($x)",
    ]
    return Definition("model", "\n".join(text))


def _finish(
    program: _Program,
    classes: list[Definition],
    *,
    setup: list[str],
    epoch: list[str],
    forward: list[str],
    update: list[str],
    close: list[str],
    places: set[str],
    by_hand: bool,
) -> Draft:
    kit, place = program.kit, program.axes.place
    if place == "half":
        places = {"half"}
    if place not in places:
        raise Impossible(f"no cut at {place} here")
    variants = {"after": frozenset({place})}
    others = sorted(places - {place, "use"})
    if others:
        other = kit.pick("other-place", others)
        variants[f"after-{other}"] = frozenset({other})
    style = kit.data_style()
    return Draft(
        title=f"{kit.theme} The state of the {program.axes.model} goes on from batch to batch with its graph",
        notes=f"Right: detach the state ({', '.join(sorted(places))}). Wrong: a new state for every batch.",
        definitions=[*classes, Definition("data", program.data.function(style))],
        data=program.data.statements(style),
        setup=setup,
        epoch=epoch,
        forward=forward,
        update=update,
        close=close,
        variants=variants,
        epochs=kit.epochs,
        judge_losses=by_hand,
    )
