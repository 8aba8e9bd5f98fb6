"""Marked sources (``«…»`` shows where), and real files to try everything on."""

from __future__ import annotations

import importlib.util
import random
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from autodetach.errors import SourceError
from autodetach.model import Edit
from autodetach.source.apply import apply, only_intended
from autodetach.source.expression import Expression
from autodetach.source.module import SourceModule
from autodetach.source.statement import Statement

Edits = Edit | Sequence[Edit] | None


def parse(text: str, name: str = "train.py") -> SourceModule:
    return SourceModule.parse(name, text.encode())


def marked_expression(marked: str) -> Expression:
    """The expression between the marks."""
    start, end = marked.index("«"), marked.index("»") - 1
    module = parse(marked.replace("«", "").replace("»", ""))
    found = module.expression(module.source.span(start, end))
    assert found is not None
    return found


def marked_statements(marked: str) -> list[Statement]:
    """The statement behind each mark."""
    module = parse(marked.replace("«", ""))
    places = [index - count for count, index in enumerate(i for i, c in enumerate(marked) if c == "«")]
    found = [module.statement(*module.source.position(place)) for place in places]
    return [statement for statement in found if statement is not None]


def edited(subject: Expression | Statement, edits: Edits) -> str | None:
    """The text after the edits, which must change nothing else; None where there are none."""
    if edits is None:
        return None
    edits = [edits] if isinstance(edits, Edit) else edits
    module = SourceModule(subject.tree.source)
    text = apply(module, edits)
    assert only_intended(module, text, edits) is None
    return text


@pytest.fixture
def expr() -> Callable[[str], Expression]:
    return marked_expression


@pytest.fixture
def stmts() -> Callable[[str], list[Statement]]:
    return marked_statements


@pytest.fixture
def after() -> Callable[[Expression | Statement, Edits], str | None]:
    return edited


def _real_paths() -> Iterator[Path]:
    library = Path(sysconfig.get_path("stdlib"))
    yield from sorted(p for p in library.rglob("*.py") if "site-packages" not in p.parts)
    torch = importlib.util.find_spec("torch")  # located, never imported
    if torch and torch.submodule_search_locations:
        yield from sorted(Path(torch.submodule_search_locations[0]).rglob("*.py"))


def readable(path: Path) -> bytes | None:
    """The bytes of a file that CPython and we can parse; the standard library's tests hold some broken on purpose."""
    data = path.read_bytes()
    try:
        compile(data, str(path), "exec", dont_inherit=True)
        SourceModule.parse(path.name, data)
    except (SyntaxError, ValueError, SourceError):
        return None
    return data


def _sample(seed: int, count: int, largest: int) -> list[tuple[str, bytes]]:
    paths = [path for path in _real_paths() if 500 < path.stat().st_size < largest]
    found: list[tuple[str, bytes]] = []
    for path in random.Random(seed).sample(paths, min(len(paths), 2 * count)):
        data = readable(path)
        if data is None:
            continue
        found.append((path.name, data))
        if len(found) == count:
            break
    return found


@pytest.fixture(scope="session")
def real_files() -> list[tuple[str, bytes]]:
    """Files of the standard library and of the installed torch."""
    return _sample(7, 50, 50_000)


@pytest.fixture(scope="session")
def all_real_paths() -> list[Path]:
    """Every file of the standard library and of the installed torch, in an order that mixes them."""
    paths = list(_real_paths())
    random.Random(3).shuffle(paths)
    return paths


@pytest.fixture(scope="session")
def real_file() -> Callable[[Path], bytes | None]:
    return readable


@pytest.fixture(scope="session")
def small_real_files() -> list[tuple[str, bytes]]:
    return _sample(11, 32, 8_000)
