"""Words of a run as what they must be. Raises KeyError, IndexError, TypeError, ValueError or the like for others."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterable
from typing import Any

from autodetach.diagnosis.recording import Birth, Number
from autodetach.model import Chain, Frame, Span

_LONGEST_PATH = 500


def span(values: Any) -> Span:
    file, line, column, end_line, end_column = values
    return Span(str(file), int(line), int(column), int(end_line), int(end_column))


def chain(rows: Any) -> Chain:
    return tuple(Frame(span(row[:5]), str(row[5]), bool(row[6])) for row in rows)


def word(value: Any) -> str | None:
    return None if value is None else str(value)


def ids(values: Any) -> frozenset[int]:
    return frozenset(int(value) for value in values)


def two(values: Any) -> tuple[int, int]:
    return int(values[0]), int(values[1])


def number(value: Any) -> Number | None:
    """A measurement: a float, or the word for one that JSON cannot carry."""
    if value is None:
        return None
    return value[:20] if isinstance(value, str) else float(value)


def numbers(values: Any) -> tuple[Number, ...]:
    found = [number(value) for value in values]
    return tuple(value for value in found if value is not None)


def fingerprint(values: Any) -> tuple[Number, Number]:
    """Norm and projection."""
    norm, projection = numbers(values[:2])
    return norm, projection


def path(values: Any) -> tuple[int | str, ...]:
    """The way into a value or among the operands of a call."""
    if not isinstance(values, list) or not all(isinstance(step, int | str) for step in values):
        raise TypeError("no path")
    return tuple(values)


def structure(value: Any, depth: int = 8) -> Any:
    """A value's shape, as ``agent/probes.py`` tells it. Raises TypeError or ValueError for what it never tells."""
    match value:
        case "tensor" | "other":
            return value
        case ["tuple" | "list" as kind, list(parts)] if depth:
            return [kind, [structure(part, depth - 1) for part in parts]]
        case ["dict", dict(parts)] if depth:
            return ["dict", {str(name): structure(part, depth - 1) for name, part in parts.items()}]
        case ["namedtuple", str(name), list(fields)] if depth:
            named = [[identifier(field), structure(part, depth - 1)] for field, part in fields]
            return ["namedtuple", identifier(name), named]
    raise TypeError("no structure")


def identifier(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise TypeError("no identifier")
    return name


def code(path: Any) -> str:
    """The code of a variable, or of attributes and entries below it, which patches take over as it is.

    Raises TypeError or ValueError (a SyntaxError is none) for anything else.
    """
    if not isinstance(path, str) or len(path) > _LONGEST_PATH:
        raise TypeError("no path")
    try:
        node: ast.AST = ast.parse(path, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError("no path") from error
    while isinstance(node, ast.Attribute | ast.Subscript):
        index = node.slice if isinstance(node, ast.Subscript) else None
        if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
            index = index.operand
        if index is not None and not isinstance(index, ast.Constant):
            raise TypeError("no path")
        node = node.value
    if not isinstance(node, ast.Name) or "\n" in path or "#" in path:
        raise TypeError("no path")
    return path


def since(rows: Any) -> tuple[tuple[str, int, bool], ...]:
    return tuple((str(k), int(n), bool(kept)) for k, n, kept in rows or ())


def birth(row: Any) -> Birth | None:
    return (str(row[0]), int(row[1]), int(row[2]), int(row[3])) if row else None


def codes(names: Any) -> Iterable[str]:
    """Those names that a patch may take over."""
    for name in names:
        try:
            yield code(name)
        except (TypeError, ValueError):
            continue
