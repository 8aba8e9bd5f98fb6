"""What holds the tensors of a state: how it is packed, read, overwritten and detached, as text."""

from __future__ import annotations

from dataclasses import dataclass

from .axes import Impossible

CONTAINERS = ("bare", "tuple", "list", "dict", "namedtuple", "dataclass", "object", "deque")


@dataclass(frozen=True)
class Container:
    """A container of ``parts``; with a depth of 2 or 3 it lies in one more container, or in two."""

    kind: str
    parts: tuple[str, ...]
    depth: int = 1
    updates_in_place: bool = False

    def __post_init__(self) -> None:
        if self.kind == "bare" and (len(self.parts) > 1 or self.depth > 1):
            raise Impossible("several tensors need a container")

    @property
    def definition(self) -> str:
        """The class that the container needs, or nothing."""
        if self.kind == "dataclass":
            return "\n".join(["@dataclass", "class Memory:", *(f"    {part}: torch.Tensor" for part in self.parts)])
        if self.kind == "namedtuple":
            if len(self.parts) > 1:
                return "\n".join(["class Memory(NamedTuple):", *(f"    {part}: torch.Tensor" for part in self.parts)])
            return f'Memory = namedtuple("Memory", ["{self.parts[0]}", "steps"])'
        if self.kind == "object":
            names = ", ".join(self.parts)
            keep = [f"        self.{part} = {part}" for part in self.parts]
            init, update = f"    def __init__(self, {names}):", f"    def update(self, {names}):"
            return "\n".join(["class Memory:", init, *keep, "", update, *keep])
        return ""

    def pack(self, values: list[str], old: str = "") -> str:
        """The container with the values; ``old`` names one from which it can take what is no tensor."""
        if old and self.kind == "namedtuple" and len(values) == 1:
            return self._wrap(f"{old}{self._path}._replace({self.parts[0]}={values[0]})")
        return self._wrap(self._pack(values))

    def read(self, whole: str) -> list[str]:
        """The expression of each part of the container that ``whole`` names."""
        inner = whole + self._path
        if self.kind == "bare":
            return [inner]
        if self.kind in ("tuple", "list"):
            return [f"{inner}[{i}]" for i in range(len(self.parts))]
        if self.kind == "dict":
            return [f'{inner}["{part}"]' for part in self.parts]
        if self.kind == "deque":
            last = f"{inner}[-1]"
            return [last] if len(self.parts) == 1 else [f"{last}[{i}]" for i in range(len(self.parts))]
        return [f"{inner}.{part}" for part in self.parts]

    def store(self, whole: str, values: list[str]) -> list[str]:
        """Statements that put new values in."""
        inner = whole + self._path
        if self.kind == "deque":
            return [f"{inner}.append({_joined(values)})"]
        if self.kind == "object":
            return [f"{inner}.update({', '.join(values)})"]
        changeable = self.kind in ("list", "dict", "dataclass")
        if changeable and self.updates_in_place:
            return [f"{place} = {value}" for place, value in zip(self.read(whole), values, strict=True)]
        if self.kind == "namedtuple" and len(values) == 1:
            return [f"{inner} = {inner}._replace({self.parts[0]}={values[0]})"]
        return [f"{inner} = {self._pack(values)}"]

    def unpack(self, whole: str, names: list[str]) -> list[str]:
        """Statements that give each part a name."""
        if len(names) > 1 and self.kind in ("tuple", "list", "namedtuple"):
            return [f"{', '.join(names)} = {whole}{self._path}"]
        return [f"{name} = {part}" for name, part in zip(names, self.read(whole), strict=True)]

    def cut(self, whole: str) -> list[str]:
        """Statements that detach all of it where it lies."""
        values = [f"{part}.detach()" for part in self.read(whole)]
        inner = whole + self._path
        if self.kind == "tuple" and len(values) > 1:
            return [f"{inner} = tuple(part.detach() for part in {inner})"]
        if self.kind == "list" and not self.updates_in_place:
            return [f"{inner} = [part.detach() for part in {inner}]"]
        if self.kind == "dict" and not self.updates_in_place:
            return [f"{inner} = {{name: part.detach() for name, part in {inner}.items()}}"]
        if self.kind == "deque":
            return [f"{inner}[-1] = {_joined(values)}"]
        return self.store(whole, values)

    def _pack(self, values: list[str]) -> str:
        if self.kind == "bare":
            return values[0]
        if self.kind == "tuple":
            return f"({', '.join(values)}{',' if len(values) == 1 else ''})"
        if self.kind == "list":
            return f"[{', '.join(values)}]"
        if self.kind == "dict":
            return "{" + ", ".join(f'"{part}": {value}' for part, value in zip(self.parts, values, strict=True)) + "}"
        if self.kind == "deque":
            return f"deque([{_joined(values)}], maxlen=2)"
        if self.kind == "namedtuple" and len(values) == 1:
            return f"Memory({values[0]}, 0)"
        if self.kind == "object":
            return f"Memory({', '.join(values)})"
        return "Memory(" + ", ".join(f"{part}={value}" for part, value in zip(self.parts, values, strict=True)) + ")"

    @property
    def _path(self) -> str:
        return {1: "", 2: '["core"]', 3: '["layers"][0]'}[self.depth]

    def _wrap(self, packed: str) -> str:
        return {1: packed, 2: f'{{"core": {packed}}}', 3: f'{{"layers": [{packed}]}}'}[self.depth]


def _joined(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"({', '.join(values)})"
