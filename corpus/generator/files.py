"""Distribute definitions and statements over files, each with its imports."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .axes import Axes

_DEFINED = re.compile(r"^(?:class|def) (\w+)|^([A-Z]\w*) = ", re.MULTILINE)
_IMPORTS = (
    (r"\bargparse\.", "import argparse"),
    (r"\bfunctools\.", "import functools"),
    (r"\bitertools\.", "import itertools"),
    (r"\bmath\.", "import math"),
    (r"\brandom\.", "import random"),
    (r"\btime\.", "import time"),
    (r"\bdeque\(", "from collections import deque"),
    (r"\bnamedtuple\(", "from collections import namedtuple"),
    (r"@dataclass\b", "from dataclasses import dataclass"),
    (r"\bNamedTuple\b", "from typing import NamedTuple"),
    (r"\btorch\.", "import torch"),
    (r"\bnn\.", "import torch.nn as nn"),
    (r"\bF\.", "import torch.nn.functional as F"),
    (r"\b(?:DataLoader|TensorDataset|Dataset)\b", "from torch.utils.data import {}"),
)
_FILES = {
    "model": ("model.py", "networks.py", "nets.py", "modules.py"),
    "data": ("data.py", "dataset.py", "source.py", "samples.py"),
    "engine": ("engine.py", "training.py", "trainer.py", "steps.py"),
    "main": ("train.py", "main.py", "run.py", "fit.py"),
}
_ROOMS = {
    "one": {},
    "model": {"model": "model"},
    "model-data": {"model": "model", "data": "data"},
    "engine": {"model": "model", "data": "data", "engine": "engine"},
    "package": {"model": "model", "data": "data", "engine": "engine"},
    "folder": {"model": "model", "data": "model"},
}


@dataclass
class Laid:
    """Definitions by room and the statements of the main file, with the names resolved."""

    rooms: dict[str, list[str]] = field(default_factory=dict)
    main: list[str] = field(default_factory=list)

    def add(self, room: str, text: str) -> None:
        self.rooms.setdefault(room, []).append(text)


@dataclass(frozen=True)
class Program:
    """The files by name, with marks, and how the program is started."""

    files: dict[str, str]
    entry: str
    args: tuple[str, ...]


def into_files(title: str, axes: Axes, laid: Laid, args: tuple[str, ...]) -> Program:
    """Distribute the rooms over files and give each file its imports."""
    rng = axes.rng("files")
    stems = {room: rng.choice(options) for room, options in _FILES.items()}
    folder = {"package": rng.choice(("lib", "project", "core")), "folder": ""}.get(axes.files, "")
    top = rng.choice(("src", "my experiment", "code")) if axes.files == "folder" else ""
    where = {room: _ROOMS[axes.files].get(room, "main") for room in ("model", "data", "engine", "main")}
    blocks: dict[str, list[str]] = {}
    for room in ("model", "data", "engine", "main"):
        for text in laid.rooms.get(room, []):
            blocks.setdefault(where[room], []).append(text)
    home = {name: room for room, texts in blocks.items() for text in texts for name in _defined(text)}
    files: dict[str, str] = {}
    for room in ("model", "data", "engine", "main"):
        texts = blocks.get(room, [])
        if room == "main":
            texts = [*texts, "\n".join(laid.main)]
        elif not texts:
            continue
        whole = "\n\n\n".join(texts)
        local = [
            f"from {folder + '.' if folder else ''}{stems[other][:-3]} import {name}"
            for name, other in sorted(home.items(), key=lambda item: (item[1], item[0]))
            if other != room and re.search(rf"(?<![\w.\"']){name}\b", whole)
        ]
        doc = f'"""{title.split(". ")[0].rstrip(".")}."""\n' if room == "main" else ""
        head = "\n".join(part for part in ("\n".join(_imports(whole)), "\n".join(_merged(local))) if part)
        path = stems[room] if room == "main" or not folder else f"{folder}/{stems[room]}"
        files[f"{top}/{path}" if top else path] = f"{doc}{head}\n\n\n{whole}\n".lstrip("\n")
    if folder:
        files[f"{folder}/__init__.py"] = ""
    entry = f"{top}/{stems['main']}" if top else stems["main"]
    return Program(files, entry, args)


def _defined(text: str) -> list[str]:
    return [found[1] or found[2] for found in _DEFINED.finditer(text)]


def _imports(text: str) -> list[str]:
    lines = []
    for pattern, line in _IMPORTS:
        found = sorted(set(re.findall(pattern, text)))
        if found:
            lines.append(line.format(", ".join(found)))
    return lines


def _merged(local: list[str]) -> list[str]:
    """One import line for each module."""
    by_module: dict[str, list[str]] = {}
    for line in local:
        module, name = line.split(" import ")
        by_module.setdefault(module, []).append(name)
    return [f"{module} import {', '.join(names)}" for module, names in by_module.items()]
