"""The code that detaches a value of known structure: a tensor, or containers of tensors."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import Any

Structure = Any
"""JSON-like: ``"tensor"`` | ``"other"`` | ``["tuple", [Structure, …]]`` | ``["list", [Structure, …]]`` |
``["dict", {key: Structure}]`` | ``["namedtuple", name, [[field, Structure], …]]``."""

_PARTS = ("part", "group", "bundle")
"""Names of the comprehension variables, from the innermost level outwards."""

_UNPACKED = {2: ("h", "c"), 3: ("first", "second", "third"), 4: ("first", "second", "third", "fourth")}
"""Names for the parts of short tuples inside a container; pairs are nearly always LSTM states."""

_DISPLAYED = 4
"""Up to so many parts of a mixed tuple are written one by one."""


def has_tensor(structure: Structure) -> bool:
    return structure == "tensor" or any(has_tensor(part) for part in parts_of(structure))


def parts_of(structure: Structure) -> list[Structure]:
    """The structures one level down."""
    match structure:
        case ["tuple" | "list", [*parts]]:
            return list(parts)
        case ["dict", dict(entries)]:
            return list(entries.values())
        case ["namedtuple", _, [*fields]]:
            return [part for _, part in fields]
    return []


def detached_code(code: str, structure: Structure, *, repeatable: bool, atom: bool = True) -> str | None:
    """An expression for ``code``'s value with every tensor in it detached; None where there is no plain one.

    ``repeatable``: ``code`` may be written several times. ``atom``: ``.detach()`` may follow it directly; if
    not, it must still be able to stand behind ``in``.
    """
    if structure == "other":
        return code
    attributed = code if atom else f"({code})"
    if structure == "tensor":
        return f"{attributed}.detach()"
    if not has_tensor(structure):
        return code
    return _uniform(code, attributed, structure, repeatable) or (_mixed(code, structure) if repeatable else None)


def _uniform(code: str, attributed: str, structure: Structure, repeatable: bool) -> str | None:
    """A comprehension, where all parts have the same shape."""
    shape = _shape(structure)
    match shape:
        case ("tuple" | "list" | "dict" | "namedtuple" as kind, part) if part is not None:
            pass
        case _:
            return None
    if kind == "namedtuple" and not repeatable:
        return None
    loop = _loop(part, parts_of(structure), value_of_dict=kind == "dict")
    if loop is None:
        return None
    variable, body = loop
    if kind == "dict":
        return f"{{key: {body} for key, {variable} in {attributed}.items()}}"
    comprehension = f"{body} for {variable} in {code}"
    if kind == "list":
        return f"[{comprehension}]"
    return f"tuple({comprehension})" if kind == "tuple" else f"type({code})(*({comprehension}))"


def _loop(shape: Any, parts: Sequence[Structure], value_of_dict: bool) -> tuple[str, str] | None:
    """A loop variable for parts of that shape, and the code that detaches it."""
    level = _height(shape)
    if level >= len(_PARTS):
        return None
    # A short tuple of plain parts is unpacked: ``(h.detach(), c.detach()) for h, c in …``.
    first = parts[0]
    alike = all(part == first for part in parts)
    match first:
        case ["tuple", [*leaves]] if alike and len(leaves) in _UNPACKED and set(leaves) <= {"tensor", "other"}:
            names = _UNPACKED[len(leaves)]
            target = f"({', '.join(names)})" if value_of_dict else ", ".join(names)
            body = _display(names, leaves, "tuple")
            return None if body is None else (target, body)
    variable = ("value" if value_of_dict else _PARTS[0]) if shape == "tensor" else _PARTS[level]
    # Of parts that differ in length the longest stands for all: the code has no length in it.
    longest = max(parts, key=lambda part: len(parts_of(part)))
    if shape != "tensor" and not alike and _shape(longest)[1] is None:
        return None
    body = detached_code(variable, longest, repeatable=True)
    return None if body is None else (variable, body)


def _mixed(code: str, structure: Structure) -> str | None:
    """Parts of different kinds, taken one by one from a value that may be repeated."""
    match structure:
        case ["tuple" | "list" as kind, [*parts]] if len(parts) <= _DISPLAYED:
            return _display([f"{code}[{index}]" for index in range(len(parts))], parts, kind)
        case ["dict", dict(entries)]:
            return _replaced_entries(code, entries)
        case ["namedtuple", _, [*fields]]:
            changed = [(name, part) for name, part in fields if has_tensor(part)]
            codes = [detached_code(f"{code}.{name}", part, repeatable=True) for name, part in changed]
            if any(c is None for c in codes):
                return None
            pairs = (f"{name}={c}" for (name, _), c in zip(changed, codes, strict=True))
            return f"{code}._replace({', '.join(pairs)})"
    return None


def _replaced_entries(code: str, entries: dict[Any, Structure]) -> str | None:
    updates = []
    for key, part in entries.items():
        if not has_tensor(part):
            continue
        # Only a key that looks like a word is certain to be a string in the program too.
        if not isinstance(key, str) or not key.isidentifier() or keyword.iskeyword(key):
            return None
        value = detached_code(f'{code}["{key}"]', part, repeatable=True)
        if value is None:
            return None
        updates.append(f'"{key}": {value}')
    return f"{{**{code}, {', '.join(updates)}}}"


def _display(codes: Sequence[str], parts: Sequence[Structure], kind: str) -> str | None:
    detached = [detached_code(c, part, repeatable=True) for c, part in zip(codes, parts, strict=True)]
    known = [code for code in detached if code is not None]
    if len(known) != len(detached):
        return None
    inside = ", ".join(known)
    if kind == "list":
        return f"[{inside}]"
    return f"({inside},)" if len(known) == 1 else f"({inside})"


def _shape(structure: Structure) -> Any:
    """The structure without its lengths: ``(kind, shape of every part)``, None for parts that differ."""
    if isinstance(structure, str):
        return structure
    shapes = {_shape(part) for part in parts_of(structure)}
    shape = shapes.pop() if len(shapes) == 1 else None
    return (structure[0], shape)


def _height(shape: Any) -> int:
    return 1 + _height(shape[1]) if isinstance(shape, tuple) else 0
