"""Lay a draft out: as a script, in functions, in a class."""

from __future__ import annotations

import re

from .axes import Axes, Impossible
from .draft import Draft, assigned, bound_by, indent, used
from .files import Laid, Program, into_files
from .hints import annotate
from .names import Names


def lay_out(draft: Draft, axes: Axes, names: Names) -> Program:
    """The draft as files.

    Raises:
        Impossible: the layout cannot hold the draft.
    """
    laid = Laid()
    for definition in draft.definitions:
        laid.add(definition.room, names.resolve(definition.text))
    {
        "script": _script,
        "main": _main,
        "argparse": _main,
        "epoch-function": _epoch_function,
        "step-function": _step_function,
        "global": _global,
        "function-attribute": _global,
        "default-argument": _default_argument,
        "closure": _closure,
        "trainer": _trainer,
    }[axes.layout](draft, axes, names, laid)
    if "hints" in axes.styles:
        laid.rooms = {room: [annotate(text, names) for text in texts] for room, texts in laid.rooms.items()}
    args = ("--epochs", str(draft.epochs)) if axes.layout == "argparse" else ()
    return into_files(draft.title, axes, laid, args)


def _report(draft: Draft, value: str) -> str:
    value = value.replace('"', "'")
    return f'print(f"epoch {{epoch}}: loss {{{value}:.4f}}")'


def _seed(axes: Axes) -> str:
    return f"torch.manual_seed({axes.rng('manual-seed').randrange(100)})"


def _wrap_main(axes: Axes, names: Names, laid: Laid, lines: list[str], epochs: int) -> None:
    """The statements inside ``main()``, started at the end of the file."""
    if axes.layout == "argparse":
        head = [
            "parser = argparse.ArgumentParser()",
            f'parser.add_argument("--epochs", type=int, default={epochs + 1})',
            "args = parser.parse_args()",
            "",
        ]
        lines = [*head, *(line.replace(f"range({epochs})", "range(args.epochs)") for line in lines)]
    laid.add("main", names.resolve("\n".join(["def main():", *indent(lines)])))
    laid.main = ['if __name__ == "__main__":', "    main()"]


def _inline(draft: Draft, axes: Axes) -> list[str]:
    return [
        _seed(axes),
        *draft.data,
        *draft.setup,
        "",
        f"for epoch in range({draft.epochs}):",
        *indent(draft.epoch),
        f"    {draft.loop}",
        *indent(draft.step, 2),
        *indent(draft.close),
        f"    {_report(draft, draft.value)}",
    ]


def _script(draft: Draft, axes: Axes, names: Names, laid: Laid) -> None:
    lines, helper = _with_helper(draft, axes)
    if helper:
        laid.add("engine", names.resolve(helper))
    laid.main = [names.resolve("\n".join(_inline(lines, axes)))]


def _main(draft: Draft, axes: Axes, names: Names, laid: Laid) -> None:
    lines, helper = _with_helper(draft, axes)
    if helper:
        laid.add("engine", names.resolve(helper))
    _wrap_main(axes, names, laid, _inline(lines, axes), draft.epochs)


def _with_helper(draft: Draft, axes: Axes) -> tuple[Draft, str]:
    """The draft with its forward part in a function of its own, where the style asks for it."""
    if "helper" not in axes.styles:
        return draft, ""
    before = {*assigned(draft.data), *assigned(draft.setup), *assigned(draft.epoch), *used([draft.loop])}
    takes = [name for name in used(draft.forward) if name in before]
    later = {*used(draft.update), *used([draft.value]), *used(draft.close), *before}
    gives = [name for name in assigned(draft.forward) if name in later]
    if not gives:
        raise Impossible("nothing to return")
    returned = ", ".join(f"${name}" for name in gives)
    signature = ", ".join(f"${name}" for name in takes)
    text = "\n".join([f"def compute_loss({signature}):", *indent(draft.forward), f"    return {returned}"])
    call = f"{returned} = compute_loss({signature})"
    fields = {**draft.__dict__, "forward": [call]}
    return Draft(**fields), text


def _decorated(axes: Axes, laid: Laid) -> list[str]:
    """The line of a decorator, whose definition goes into the room of the functions."""
    if "decorator" not in axes.styles:
        return []
    text = [
        "def timed(function):",
        "    @functools.wraps(function)",
        "    def wrapper(*args, **kwargs):",
        "        start = time.perf_counter()",
        "        result = function(*args, **kwargs)",
        "        wrapper.seconds += time.perf_counter() - start",
        "        return result",
        "",
        "    wrapper.seconds = 0.0",
        "    return wrapper",
    ]
    laid.add("engine", "\n".join(text))
    return ["@timed"]


def _epoch_function(draft: Draft, axes: Axes, names: Names, laid: Laid) -> None:
    draft, helper = _with_helper(draft, axes)
    if helper:
        laid.add("engine", names.resolve(helper))
    known = {*assigned(draft.data), *assigned(draft.setup)}
    body = [*draft.epoch, draft.loop, *indent(draft.step), *draft.close]
    takes = [name for name in used(body) if name in known]
    carried = [name for name in assigned(draft.step) if name in assigned(draft.setup)]
    signature = ", ".join(f"${name}" for name in takes)
    returned = ", ".join([draft.value, *(f"${name}" for name in carried)])
    lines = [*_decorated(axes, laid), f"def train_epoch({signature}):", *indent(body), f"    return {returned}"]
    laid.add("engine", names.resolve("\n".join(lines)))
    targets = ", ".join(["value", *(f"${name}" for name in carried)])
    outer = [
        _seed(axes),
        *draft.data,
        *draft.setup,
        f"for epoch in range({draft.epochs}):",
        f"    {targets} = train_epoch({signature})",
        f"    {_report(draft, 'value')}",
    ]
    _wrap_main(axes, names, laid, outer, draft.epochs)


def _step_lines(draft: Draft, axes: Axes, call: str, targets: list[str]) -> list[str]:
    return [
        f"for epoch in range({draft.epochs}):",
        *indent(draft.epoch),
        f"    {draft.loop}",
        f"        {', '.join(['value', *targets])} = {call}",
        *indent(draft.close),
        f"    {_report(draft, 'value')}",
    ]


def _function_of_step(
    draft: Draft, axes: Axes, names: Names, laid: Laid, carried_outside: bool
) -> tuple[str, list[str]]:
    draft, helper = _with_helper(draft, axes)
    if helper:
        laid.add("engine", names.resolve(helper))
    before = {*assigned(draft.data), *assigned(draft.setup), *assigned(draft.epoch), *used([draft.loop])}
    carried = [name for name in assigned(draft.step) if name in before and name not in bound_by(draft.loop)]
    if carried_outside:
        carried = list(dict.fromkeys([*carried, *_changed(draft)]))
    if carried_outside and not carried:
        raise Impossible("nothing lives outside of the step")
    takes = [name for name in used(draft.step) if name in before and not (carried_outside and name in carried)]
    signature = ", ".join(f"${name}" for name in takes)
    given = [] if carried_outside else carried
    rebound = [name for name in carried if name in assigned(draft.step)]
    on_function = axes.layout == "function-attribute"
    body = [f"global {', '.join(f'${n}' for n in rebound)}"] if carried_outside and rebound and not on_function else []
    body += [*draft.step, f"return {', '.join([draft.value, *(f'${n}' for n in given)])}"]
    lines = [*_decorated(axes, laid), f"def train_step({signature}):", *indent(body)]
    if carried_outside:
        own = [s for s in draft.setup if set(assigned([s])) & set(carried)]
        if any(set(used([s])) - set(carried) for s in own) or set(assigned(draft.epoch)) & set(carried):
            raise Impossible("the state depends on what is made in main")
        lines = [*lines, "", "", *own] if on_function else [*own, "", "", *lines]
    attributes = frozenset(carried) if on_function else frozenset[str]()
    laid.add("engine", names.resolve("\n".join(lines), attributes, "train_step"))
    return f"train_step({signature})", carried


def _changed(draft: Draft) -> list[str]:
    """What the set-up makes and the step changes without binding it anew: a container that is stored to."""
    text = "\n".join(draft.step)
    made = assigned(draft.setup)
    return [n for n in made if re.search(rf"\${n}\b(\[[^\n]*\])* = |\${n}\b\S*\.(append|update)\(|\${n}\.\w+ = ", text)]


def _step_function(draft: Draft, axes: Axes, names: Names, laid: Laid) -> None:
    call, carried = _function_of_step(draft, axes, names, laid, carried_outside=False)
    targets = [f"${name}" for name in carried]
    lines = [_seed(axes), *draft.data, *draft.setup, *_step_lines(draft, axes, call, targets)]
    _wrap_main(axes, names, laid, lines, draft.epochs)


def _global(draft: Draft, axes: Axes, names: Names, laid: Laid) -> None:
    call, carried = _function_of_step(draft, axes, names, laid, carried_outside=True)
    setup = _others(draft, carried)
    _wrap_main(axes, names, laid, [_seed(axes), *draft.data, *setup, *_step_lines(draft, axes, call, [])], draft.epochs)


def _others(draft: Draft, carried: list[str]) -> list[str]:
    """The set-up without what makes the carried variables, which main does not see."""
    setup = [s for s in draft.setup if not set(assigned([s])) & set(carried)]
    if set(used([*setup, *draft.epoch, draft.loop, *draft.close])) & set(carried):
        raise Impossible("main needs what the function keeps")
    return setup


def _default_argument(draft: Draft, axes: Axes, names: Names, laid: Laid) -> None:
    """What the step changes is made once, as the default of a parameter that nobody gives."""
    carried = _changed(draft)
    own = [s for s in draft.setup if set(assigned([s])) & set(carried)]
    alone = all(set(used([s])) <= set(carried) and "\n" not in s and "⟦" not in s for s in own)
    if not carried or set(carried) & {*assigned(draft.step), *assigned(draft.epoch)} or not alone:
        raise Impossible("nothing that a default could hold")
    before = {*assigned(draft.data), *assigned(draft.setup), *assigned(draft.epoch), *used([draft.loop])}
    rebound = [n for n in assigned(draft.step) if n in before and n not in bound_by(draft.loop)]
    takes = [n for n in used(draft.step) if n in before and n not in carried]
    signature = ", ".join(f"${n}" for n in takes)
    defaults = ", ".join(statement.replace(" = ", "=", 1) for statement in own)
    returned = ", ".join([draft.value, *(f"${n}" for n in rebound)])
    lines = [f"def train_step({signature}, {defaults}):", *indent([*draft.step, f"return {returned}"])]
    laid.add("engine", names.resolve("\n".join([*_decorated(axes, laid), *lines])))
    setup = _others(draft, carried)
    step = _step_lines(draft, axes, f"train_step({signature})", [f"${n}" for n in rebound])
    _wrap_main(axes, names, laid, [_seed(axes), *draft.data, *setup, *step], draft.epochs)


def _closure(draft: Draft, axes: Axes, names: Names, laid: Laid) -> None:
    if "helper" in axes.styles or "decorator" in axes.styles:
        raise Impossible("a closure is enough")
    rebound = [name for name in assigned(draft.step) if name in assigned(draft.setup)]
    carried = list(dict.fromkeys([*rebound, *_changed(draft)]))
    if not carried or set(assigned(draft.epoch)) & {*carried, *used(draft.step)}:
        raise Impossible("nothing for the closure to hold")
    own = [s for s in draft.setup if set(assigned([s])) & set(carried)]
    rest = [s for s in draft.setup if s not in own]
    outside = {*assigned(rest), *assigned(draft.data)}
    loop = bound_by(draft.loop)
    takes = [n for n in used([*own, *draft.step]) if n in outside and n not in loop]
    given = [n for n in loop if n in used(draft.step) and n not in outside]
    outer, inner = ", ".join(f"${n}" for n in takes), ", ".join(f"${n}" for n in given)
    nonlocal_ = [f"nonlocal {', '.join(f'${n}' for n in rebound)}"] if rebound else []
    lines = [
        f"def make_step({outer}):",
        *indent(own),
        "",
        f"    def step({inner}):",
        *indent([*nonlocal_, *draft.step, f"return {draft.value}"], 2),
        "",
        "    return step",
    ]
    laid.add("engine", names.resolve("\n".join(lines)))
    start = [_seed(axes), *draft.data, *rest, f"step = make_step({outer})"]
    _wrap_main(axes, names, laid, [*start, *_step_lines(draft, axes, f"step({inner})", [])], draft.epochs)


def _trainer(draft: Draft, axes: Axes, names: Names, laid: Laid) -> None:
    outside = assigned(draft.data)
    own = frozenset([*assigned(draft.setup), *assigned(draft.epoch)]) - set(outside)
    loop = bound_by(draft.loop)
    takes = [n for n in used(draft.setup) if n in outside]
    given = [n for n in loop if n in used(draft.step) and n not in outside]
    batches = [n for n in used([draft.loop, *draft.step, *draft.epoch, *draft.close]) if n in outside]
    if set(batches) & set(used(draft.step)):
        raise Impossible("a step has no data but its batch")
    arguments = ", ".join(f"${n}" for n in given)
    step = [f"def train_step(self{_also(arguments)}):", *indent([*draft.step, f"return {draft.value}"])]
    if "helper" in axes.styles:
        step = _helper_method(draft, own, arguments)
    fit = [
        f"def fit(self{_also(', '.join(f'${n}' for n in batches))}, epochs):",
        "    for epoch in range(epochs):",
        *indent(draft.epoch, 2),
        f"        {draft.loop}",
        f"            value = self.train_step({arguments})",
        *indent(draft.close, 2),
        f"        {_report(draft, 'value')}",
    ]
    parameters = ", ".join(["self", *(f"${n}" for n in takes)])
    init = [f"def __init__({parameters}):", *indent(draft.setup)]
    lines = ["class Trainer:", *indent(init), "", *indent([*_decorated(axes, laid), *step]), "", *indent(fit)]
    laid.add("engine", names.resolve("\n".join(lines), own))
    start = [
        _seed(axes),
        *draft.data,
        f"trainer = Trainer({', '.join(f'${n}' for n in takes)})",
        f"trainer.fit({', '.join([*(f'${n}' for n in batches), str(draft.epochs)])})",
    ]
    _wrap_main(axes, names, laid, start, draft.epochs)


def _also(arguments: str) -> str:
    return f", {arguments}" if arguments else ""


def _helper_method(draft: Draft, own: frozenset[str], arguments: str) -> list[str]:
    later = {*used(draft.update), *used([draft.value])} - own
    gives = [n for n in assigned(draft.forward) if n in later]
    if not gives:
        raise Impossible("nothing to return")
    returned = ", ".join(f"${n}" for n in gives)
    return [
        f"def compute_loss(self{_also(arguments)}):",
        *indent([*draft.forward, f"return {returned}"]),
        "",
        f"def train_step(self{_also(arguments)}):",
        f"    {returned} = self.compute_loss({arguments})",
        *indent([*draft.update, f"return {draft.value}"]),
    ]
