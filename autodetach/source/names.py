"""The names and dotted paths that a statement reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Union

import libcst as cst

from autodetach.source.tree import Tree

Targets = Union[str, tuple["Targets", ...]]  # noqa: UP007 - refers to itself
"""The code of one assignment target, or the entries of a tuple target."""


def targets_of(tree: Tree, statement: cst.CSTNode) -> tuple[Targets, ...]:
    """What an assignment, a ``for``, a ``with`` or a ``del`` binds."""
    return tuple(_structure(tree, node) for node in _target_nodes(statement))


def flat(targets: Iterable[Targets]) -> Iterator[str]:
    for target in targets:
        if isinstance(target, str):
            yield target
        else:
            yield from flat(target)


def names_read(node: cst.CSTNode) -> frozenset[str]:
    return frozenset(_read(node))


def names_written(node: cst.CSTNode) -> frozenset[str]:
    return frozenset(_written(node))


def overlap(left: Iterable[str], right: Iterable[str]) -> bool:
    """Whether a path of one side is, holds, or is held by one of the other (``self.h``, ``self.h.data``)."""
    others = [f"{path}." for path in right]
    return any(a.startswith(b) or b.startswith(a) for a in (f"{path}." for path in left) for b in others)


def _structure(tree: Tree, target: cst.CSTNode) -> Targets:
    if isinstance(target, (cst.Tuple, cst.List)):
        return tuple(_structure(tree, element) for element in target.elements)
    if isinstance(target, cst.Element):
        return _structure(tree, target.value)
    if isinstance(target, cst.StarredElement):
        return f"*{tree.code(target.value)}"
    return tree.code(target)


def _target_nodes(node: cst.CSTNode) -> list[cst.BaseExpression]:
    match node:
        case cst.Assign(targets=targets):
            return [target.target for target in targets]
        case cst.AnnAssign(target=target) | cst.AugAssign(target=target) | cst.Del(target=target):
            return [target]
        case cst.For(target=target) | cst.NamedExpr(target=target):
            return [target]
        case cst.With(items=items):
            return [item.asname.name for item in items if item.asname]
    return []


def _path(node: cst.CSTNode) -> str | None:
    """``self.state.h`` for a chain of attributes of a name, else None."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = _path(node.value)
        return f"{base}.{node.attr.value}" if base else None
    return None


def _read(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, (cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal)):
        return
    if path := _path(node):
        yield path
        return
    hidden: list[cst.CSTNode | None] = [getattr(node, "asname", None)]
    if not isinstance(node, cst.AugAssign):
        for target in _target_nodes(node):
            yield from _read_by_target(target)
            hidden.append(target)
    if isinstance(node, cst.Assign):
        hidden.extend(node.targets)
    if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Param, cst.ExceptHandler, cst.ExceptStarHandler)):
        hidden.append(node.name)
    if isinstance(node, cst.Attribute):
        hidden.append(node.attr)
    if isinstance(node, cst.Arg):
        hidden.append(node.keyword)
    for child in node.children:
        if not any(child is part for part in hidden):
            yield from _read(child)


def _read_by_target(target: cst.CSTNode) -> Iterator[str]:
    """Binding ``x[i]`` reads ``x`` and ``i``; binding ``x`` or ``self.h`` reads nothing."""
    match target:
        case cst.Name():
            return
        case cst.Attribute(value=value):
            # ``self`` does not count: ``self.h = 1`` and ``self.c = 2`` may change places.
            if not _path(value):
                yield from _read(value)
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from _read_by_target(element.value)
        case _:
            yield from _read(target)


def _written(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        yield node.name.value
        return
    if isinstance(node, cst.Lambda):
        return
    for target in _target_nodes(node):
        yield from _bound(target)
    if isinstance(node, (cst.ImportAlias, cst.ExceptHandler, cst.ExceptStarHandler)):
        yield from _bound_by_name(node)
    if isinstance(node, (cst.MatchAs, cst.MatchStar)) and node.name:
        yield node.name.value
    if isinstance(node, cst.MatchMapping) and node.rest:
        yield node.rest.value
    for child in node.children:
        yield from _written(child)


def _bound(target: cst.CSTNode) -> Iterator[str]:
    match target:
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from _bound(element.value)
        case cst.Subscript(value=value) | cst.Attribute(value=value):
            path = _path(target)
            if path:
                yield path
            else:
                yield from _bound(value)
        case cst.Call(func=func):
            yield from _bound(func)
        case _:
            if path := _path(target):
                yield path


def _bound_by_name(node: cst.ImportAlias | cst.ExceptHandler | cst.ExceptStarHandler) -> Iterator[str]:
    asname = node.asname if isinstance(node, cst.ImportAlias) else node.name
    if asname:
        yield from _bound(asname.name)
    elif isinstance(node, cst.ImportAlias):
        yield node.evaluated_name.partition(".")[0]
