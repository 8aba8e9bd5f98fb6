"""Edits that cut a value from its graph: where it is made, or after the statement that stores it."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from autodetach.model import Edit
from autodetach.source.edits.containers import Structure, detached_code, has_tensor, parts_of
from autodetach.source.edits.lines import insert_after, insert_at_start
from autodetach.source.edits.splice import splice
from autodetach.source.expression import Expression, is_name_like
from autodetach.source.statement import Statement
from autodetach.source.text import SourceText

_LEAVES = frozenset({"Return", "Raise", "Break", "Continue"})
_LOOSE = (cst.IfExp, cst.Lambda, cst.NamedExpr, cst.Yield)
"""What cannot stand bare behind the ``in`` of a comprehension."""


def detach_expression(expression: Expression, structure: Structure) -> Edit | None:
    """Detach the value of ``expression`` where it stands.

    In a display or a comprehension the parts are detached in place; any other container is wrapped in a
    comprehension. None for an assignment target, a value without tensors, and structures without a plain way.
    """
    if expression.is_target or not has_tensor(structure):
        return None
    changes = _changes(expression, structure)
    if not changes:
        return None
    source = expression.tree.source
    start, end = changes[0].start, changes[-1].end
    text, done = "", start
    for change in changes:
        text += source.text[done : change.start] + change.text
        done = change.end
    return Edit(source.name, start, end, text)


def _changes(expression: Expression, structure: Structure) -> list[Edit] | None:
    """The splices, in the order of the text; None where it cannot be done."""
    if structure == "other":
        return []
    inside = _inside(expression, structure)
    if inside is not None:
        changes: list[Edit] = []
        for part, part_structure in inside:
            part_changes = _changes(part, part_structure)
            if part_changes is None:
                return None
            changes += part_changes
        return changes
    if structure == "tensor":
        if expression.is_bare_generator:
            return None  # a generator is no tensor, and its parentheses are the call's
        return _append(expression, ".detach()")
    if _assigns(expression.node):
        return None  # Python allows no walrus behind the ``in`` of a comprehension
    code = detached_code(
        expression.code if not isinstance(expression.node, _LOOSE) else f"({expression.code})",
        structure,
        repeatable=expression.is_name_like,
        atom=expression.is_atom or isinstance(expression.node, _LOOSE),
    )
    change = None if code is None else splice(expression, code)
    return None if change is None else [change]


def _assigns(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.NamedExpr) or any(map(_assigns, node.children))


def _inside(expression: Expression, structure: Structure) -> list[tuple[Expression, Structure]] | None:
    """The parts of a display, or the one part of a comprehension, with their structures."""
    tree, node = expression.tree, expression.node
    match structure, node:
        case ["tuple", [*parts]], cst.Tuple(elements=elements):
            values = [element.value for element in elements if isinstance(element, cst.Element)]
        case ["list", [*parts]], cst.List(elements=elements):
            values = [element.value for element in elements if isinstance(element, cst.Element)]
        case ["dict", dict(entries)], cst.Dict(elements=elements):
            parts = list(entries.values())
            values = [element.value for element in elements if isinstance(element, cst.DictElement)]
        case ["list", [first, *others]], cst.ListComp(elt=part) if all(other == first for other in others):
            return [(Expression(tree, part), first)]
        case ["dict", dict(entries)], cst.DictComp(value=part):
            first, *others = parts_of(structure)
            return [(Expression(tree, part), first)] if all(o == first for o in others) else None
        case [("tuple" | "list") as kind, [first, *others]], cst.Call(
            func=cst.Name(value=name), args=[cst.Arg(value=cst.GeneratorExp(elt=part), star="")]
        ) if name == kind and all(other == first for other in others):
            return [(Expression(tree, part), first)]
        case _:
            return None
    if len(values) != len(elements) or len(values) != len(parts):
        return None
    return [(Expression(tree, value), part) for value, part in zip(values, parts, strict=True)]


def _append(expression: Expression, suffix: str) -> list[Edit]:
    name = expression.tree.source.name
    if expression.parenthesise_for_attribute:
        start, end = expression.start, expression.end
        return [Edit(name, start, start, "("), Edit(name, end, end, f"){suffix}")]
    end = expression.end if expression.is_atom else expression.outer_end
    return [Edit(name, end, end, suffix)]


def append_call(expression: Expression, suffix: str) -> Edit | None:
    """Put a method call behind an expression, in parentheses if need be. None for an assignment target."""
    if expression.is_target or expression.is_bare_generator:
        return None
    changes = _append(expression, suffix)
    if len(changes) == 1:
        return changes[0]
    text = f"({expression.code}){suffix}"
    return Edit(expression.tree.source.name, expression.start, expression.end, text)


def detach_after(statement: Statement, target: str, structure: Structure) -> Edit | None:
    """Insert ``target = target.detach()`` behind the statement; see ``detach_targets_after``."""
    return detach_targets_after(statement, [(target, structure)])


def detach_targets_after(statement: Statement, targets: Sequence[tuple[str, Structure]]) -> Edit | None:
    """Insert one line that rebinds every target to its detached value.

    What a ``for`` or a ``with`` binds is detached at the start of its body. None for targets that are not
    names, attributes and subscripts of them, and behind a statement that leaves its suite.
    """
    codes = []
    for target, structure in targets:
        if not has_tensor(structure) or not _can_be_rebound(target):
            return None
        code = detached_code(target, structure, repeatable=True)
        if code is None:
            return None
        codes.append(code)
    if not codes or statement.kind in _LEAVES:
        return None
    line = f"{', '.join(target for target, _ in targets)} = {', '.join(codes)}"
    bound = set(statement.targets)
    if statement.kind in ("For", "With") and any(target in bound for target, _ in targets):
        return insert_at_start(statement, line)
    return insert_after(statement, line)


def _can_be_rebound(target: str) -> bool:
    if SourceText("", target, "utf-8", False).newline in target:
        return False
    try:
        return is_name_like(cst.parse_expression(target))
    except cst.ParserSyntaxError:
        return False


def rebind(statement: Statement) -> Edit | None:
    """``x.detach()`` alone on its line, its result thrown away → ``x = x.detach()``."""
    call = statement.node.value if isinstance(statement.node, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    receiver = Expression(statement.tree, call.func.value)
    if not _can_be_rebound(receiver.code) or receiver.code in ("self", "cls"):
        return None
    return Edit(statement.tree.source.name, statement.start, statement.start, f"{receiver.code} = ")
