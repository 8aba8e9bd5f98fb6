"""Every kind of edit, at random places of many real files, against what CPython's own tree says of it."""

from __future__ import annotations

import ast
import copy
import random
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import libcst as cst
import pytest

from autodetach.model import Edit, Span
from autodetach.repairs.out_of_place import rewritten
from autodetach.source import edits
from autodetach.source.apply import apply, only_intended
from autodetach.source.diff import read_patch, unified_diff
from autodetach.source.expression import Expression
from autodetach.source.module import SourceModule
from autodetach.source.statement import Statement

MARK = "marked_ = 0"
TIMES = 2
"""Tries of each kind in each file."""

Change = tuple[Sequence[Edit], ast.AST | None]
"""The edits, and the tree they must lead to (None: any that parses)."""


class Places:
    """The fitting places of one file, and its tree as CPython sees it."""

    def __init__(self, name: str, data: bytes) -> None:
        self.module = SourceModule.parse(name, data)
        self.tree = ast.parse(data)
        nodes = [Expression(self.module.tree, node) for node in self.module.tree.expressions.values()]
        self.expressions = [e for e in nodes if self._fits(e)]
        self.statements = self.module.walk()

    def _fits(self, expression: Expression) -> bool:
        """Read, not part of an f-string (which has no exact positions before 3.12), and no docstring."""
        if expression.is_target or (expression.parent is None and expression.statement.kind == "Expr"):
            return False
        parent = expression.parent
        while parent is not None:
            if isinstance(parent.node, cst.FormattedString):
                return False
            parent = parent.parent
        return True

    def replaced(self, span: Span, make: Callable[[ast.AST], ast.AST | list[ast.AST] | None]) -> ast.AST:
        """The tree with the node at the span replaced."""
        place = (span.line, span.column, span.end_line, span.end_column)

        class Replacer(ast.NodeTransformer):
            done = 0

            def visit(self, node: ast.AST) -> ast.AST | list[ast.AST] | None:
                if isinstance(node, (ast.expr, ast.stmt)) and position(node) == place and not self.done:
                    if isinstance(node, ast.Expr) and want_expression:
                        return self.generic_visit(node)
                    self.done += 1
                    return make(node)
                return self.generic_visit(node)

        want_expression = make.__name__.startswith("expression")
        replacer = Replacer()
        tree = replacer.visit(copy.deepcopy(self.tree))
        assert replacer.done == 1
        return tree


def position(node: ast.expr | ast.stmt) -> tuple[int, int, int | None, int | None]:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def as_expression(code: str) -> ast.expr:
    return ast.parse(f"({code})", mode="eval").body


def detach_tensor(places: Places, rng: random.Random) -> Change | None:
    chosen = rng.choice(places.expressions)
    edit = edits.detach_expression(chosen, "tensor")
    if edit is None:
        return None

    def expression(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.expr)
        return ast.Call(ast.Attribute(node, "detach", ast.Load()), [], [])

    return [edit], places.replaced(chosen.span, expression)


def append_call(places: Places, rng: random.Random) -> Change | None:
    chosen = rng.choice(places.expressions)
    edit = edits.append_call(chosen, ".marked_()")

    def expression(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.expr)
        return ast.Call(ast.Attribute(node, "marked_", ast.Load()), [], [])

    return None if edit is None else ([edit], places.replaced(chosen.span, expression))


def out_of_place(places: Places, rng: random.Random) -> Change | None:
    """``x += y`` as ``x = x + y``: whatever y is, it has to stay one operand."""
    found = [s for s in places.statements if s.kind == "AugAssign"]
    chosen = rng.choice(found) if found else None
    edit = rewritten(None, chosen)
    if chosen is None or edit is None:
        return None

    def statement(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
        value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        return ast.Assign([node.target], value)

    return [edit], places.replaced(chosen.span, statement)


def drop_decorator(places: Places, rng: random.Random) -> Change | None:
    found = [(s, d) for s in places.statements for d in s.decorators]
    if not found:
        return None
    chosen, decorator = rng.choice(found)
    edit = edits.drop_decorator(chosen, decorator)
    place = (decorator.span.line, decorator.span.column)

    def statement(node: ast.AST) -> ast.AST:
        node.decorator_list = [d for d in node.decorator_list if (d.lineno, d.col_offset) != place]
        return node

    return None if edit is None else ([edit], places.replaced(chosen.span, statement))


def detach_container(places: Places, rng: random.Random) -> Change | None:
    chosen = rng.choice(places.expressions)
    structure = rng.choice(
        [
            ["tuple", ["tensor", "tensor"]],
            ["list", [["tuple", ["tensor", "tensor"]]]],
            ["dict", {"a": "tensor", "b": "other"}],
            ["dict", {"a": ["list", ["tensor"]]}],
            ["namedtuple", "State", [["h", "tensor"], ["n", "other"]]],
        ]
    )
    edit = edits.detach_expression(chosen, structure)
    return None if edit is None else ([edit], None)


def replace(places: Places, rng: random.Random) -> Change | None:
    chosen = rng.choice(places.expressions)
    code = rng.choice(["a + b", "a, b", "lambda: a", "a if b else c", "not a", "a.b[c]", "-a", "a < b", "a or b"])
    edit = edits.replace_expression(chosen, code)

    def expression(node: ast.AST) -> ast.AST:
        return as_expression(code)

    return None if edit is None else ([edit], places.replaced(chosen.span, expression))


def calls(places: Places) -> list[Expression]:
    return [e for e in places.expressions if isinstance(as_expression_or_none(e), ast.Call)]


def as_expression_or_none(expression: Expression) -> ast.expr | None:
    return as_expression(expression.code + "\n") if expression.code.endswith(")") else None


def drop_keyword(places: Places, rng: random.Random) -> Change | None:
    found = [(c, k.arg) for c in calls(places) for k in as_expression(c.code + "\n").keywords if k.arg]
    if not found:
        return None
    chosen, name = rng.choice(found)
    edit = edits.drop_keyword(chosen, name)
    assert edit is not None

    def expression(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.Call)
        node.keywords = [keyword for keyword in node.keywords if keyword.arg != name]
        return node

    return [edit], places.replaced(chosen.span, expression)


def set_keyword(places: Places, rng: random.Random) -> Change | None:
    found = calls(places)
    if not found:
        return None
    chosen = rng.choice(found)
    edit = edits.set_keyword(chosen, "marked_", "True")

    def expression(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.Call)
        node.keywords.append(ast.keyword("marked_", ast.Constant(True)))
        return node

    return None if edit is None else ([edit], places.replaced(chosen.span, expression))


def drop_method_call(places: Places, rng: random.Random) -> Change | None:
    found = [c for c in calls(places) if isinstance(as_expression(c.code + "\n").func, ast.Attribute)]
    found = [c for c in found if c.statement.kind != "Expr"]
    if not found:
        return None
    chosen = rng.choice(found)
    edit = edits.drop_method_call(chosen)

    def expression(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        return node.func.value

    return None if edit is None else ([edit], places.replaced(chosen.span, expression))


def movable(places: Places) -> list[Statement]:
    """Statements before which others may stand: no docstring, no import from the future, in a function."""
    return [s for s in places.statements if s.function is not None and s.kind not in ("Global", "Nonlocal")]


def insert(places: Places, rng: random.Random) -> Change | None:
    found = movable(places)
    if not found:
        return None
    chosen = rng.choice(found)
    before = rng.random() < 0.5
    edit = (edits.insert_before if before else edits.insert_after)(chosen, MARK)
    mark = ast.parse(MARK).body[0]

    def statement(node: ast.AST) -> list[ast.AST]:
        return [mark, node] if before else [node, mark]

    return None if edit is None else ([edit], places.replaced(chosen.span, statement))


def insert_at_start(places: Places, rng: random.Random) -> Change | None:
    found = [s for s in movable(places) if s.body and s.kind != "Match"]
    if not found:
        return None
    chosen = rng.choice(found)
    edit = edits.insert_at_start(chosen, MARK)
    mark = ast.parse(MARK).body[0]

    def statement(node: ast.AST) -> ast.AST:
        body = node.body
        defines = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        body.insert(1 if defines and ast.get_docstring(node) is not None else 0, mark)
        return node

    return None if edit is None else ([edit], places.replaced(chosen.span, statement))


def delete(places: Places, rng: random.Random) -> Change | None:
    found = [s for s in movable(places) if s.kind in ("Expr", "Assign", "Return", "If", "For", "With", "Raise")]
    if not found:
        return None
    chosen = rng.choice(found)

    def statement(node: ast.AST) -> ast.AST | None:
        return ast.Pass() if len(chosen.suite) == 1 else None

    return [edits.delete_statement(chosen)], places.replaced(chosen.span, statement)


def wrap(places: Places, rng: random.Random) -> Change | None:
    found = movable(places)
    if not found:
        return None
    chosen = rng.choice(found)
    change = edits.wrap_in_with([chosen], "marked_()")

    def statement(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.stmt)
        return ast.With([ast.withitem(as_expression("marked_()"))], [node])

    return None if change is None else (change, places.replaced(chosen.span, statement))


def dissolve(places: Places, rng: random.Random) -> Change | None:
    found = [s for s in places.statements if s.kind == "With"]
    if not found:
        return None
    chosen = rng.choice(found)
    change = edits.move_out_of_with(chosen, chosen.body)

    def statement(node: ast.AST) -> ast.AST | list[ast.AST]:
        assert isinstance(node, (ast.With, ast.AsyncWith))
        node.items.pop(0)
        return node if node.items else list(node.body)

    return None if change is None else (change, places.replaced(chosen.span, statement))


def move(places: Places, rng: random.Random) -> Change | None:
    found = movable(places)
    if not found:
        return None
    place = rng.choice(found)
    near = [s for s in found if s.function == place.function and s.kind in ("Expr", "Assign", "If", "With")]
    near = [s for s in near if not any(word in s.code for word in ("break", "continue", "yield"))]
    if not near:
        return None
    chosen = rng.choice(near)
    change = edits.move_statements([chosen], **{rng.choice(["before", "after"]): place})
    return None if change is None else (change, None)


KINDS = [
    detach_tensor,
    append_call,
    out_of_place,
    drop_decorator,
    detach_container,
    replace,
    drop_keyword,
    set_keyword,
    drop_method_call,
    insert,
    insert_at_start,
    delete,
    wrap,
    dissolve,
    move,
]


def statements_of(tree: ast.AST) -> list[str]:
    simple = (s for s in ast.walk(tree) if isinstance(s, ast.stmt) and not hasattr(s, "body"))
    simple = (s for s in simple if not isinstance(s, ast.Match))
    return sorted(ast.dump(s) for s in simple if not isinstance(s, ast.Pass))


def keeps_the_rest(places: Places, made: Sequence[Edit], old: bytes, new: bytes) -> bool:
    """Whether the bytes before the first edit and behind the last are what they were."""
    text = places.module.text
    before = places.module.encode(text[: min(edit.start for edit in made)])
    behind = places.module.encode(text[max(edit.end for edit in made) :])
    mark = places.module.encode("")  # a byte-order mark, if the file has one
    return new.startswith(before) and old.startswith(before) and new.endswith(behind.removeprefix(mark))


def changes(
    files: Sequence[tuple[str, bytes]], kind: Callable[..., Change | None], times: int = TIMES
) -> Iterator[tuple[bytes, bytes]]:
    for name, data in files:
        places, rng = cached_places(name, data), random.Random(f"{name} {kind.__name__}")
        for _ in range(times if places.expressions else 0):
            change = kind(places, rng)
            if change is None:
                continue
            made, expected = change
            text = apply(places.module, made)
            if text == places.module.text:
                continue  # moved to where it was
            assert only_intended(places.module, text, made) is None, (name, made)
            encoded = places.module.encode(text)
            assert keeps_the_rest(places, made, data, encoded), (name, made)
            if expected is not None:
                assert ast.dump(ast.parse(encoded)) == ast.dump(expected), (name, made)
            elif kind is move:
                assert statements_of(ast.parse(encoded)) == statements_of(places.tree), (name, made)
            lines, tokens = edits.size(places.module, made)
            assert lines >= 1 and tokens >= 0
            yield data, encoded


_PLACES: dict[tuple[str, int], Places] = {}


def cached_places(name: str, data: bytes) -> Places:
    key = (name, hash(data))
    if key not in _PLACES:
        _PLACES[key] = Places(name, data)
    return _PLACES[key]


@pytest.mark.parametrize("kind", KINDS)
def test_edits_do_what_they_say_and_no_more(small_real_files, kind, tmp_path):
    made = list(changes(small_real_files, kind))
    assert len(made) >= (2 if kind is out_of_place else 5)
    before = {f"src {i}/é{i}.py": old for i, (old, _) in enumerate(made)}
    after = {f"src {i}/é{i}.py": new for i, (_, new) in enumerate(made)}
    diff = unified_diff(before, after)
    assert read_patch(diff, before) == {n: d for n, d in after.items() if d != before[n]}
    for command in (["git", "apply"], ["patch", "-p1", "--binary", "-s"]):
        root = tmp_path / command[0]
        applied(root, before, diff, command)
        assert {name: (root / name).read_bytes() for name in after} == after


DENSE = Path(__file__).with_name("dense.txt").read_bytes()
"""Everything that is hard to edit around, on few lines."""


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"], ids=["unix", "dos"])
@pytest.mark.parametrize("kind", KINDS)
def test_edits_among_everything_that_is_hard_to_edit_around(kind, newline, tmp_path):
    data = DENSE.replace(b"\n", newline)
    made = list(changes([(f"dense{len(newline)}.py", data)], kind, times=12))
    assert len(made) >= 2
    before = {f"{i}/d.py": old for i, (old, _) in enumerate(made)}
    after = {f"{i}/d.py": new for i, (_, new) in enumerate(made)}
    diff = unified_diff(before, after)
    assert read_patch(diff, before) == {n: d for n, d in after.items() if d != before[n]}
    applied(tmp_path / "git", before, diff, ["git", "apply"])
    assert {name: (tmp_path / "git" / name).read_bytes() for name in after} == after
    comments = [line.partition(b"#")[2] for line in DENSE.splitlines() if b"  # kept" in line]
    for _, new in made:
        gone = [comment for comment in comments if comment not in new]
        assert len(gone) <= 6, gone  # of a block that was deleted as a whole


SHARDS = 40


@pytest.mark.nightly
@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_file_of_the_standard_library_and_of_torch(shard, all_real_paths, real_file, tmp_path):
    """Two kinds of edits in each file, others in every file; the whole takes about an hour."""
    made = []
    for number, path in enumerate(all_real_paths[shard::SHARDS]):
        data = real_file(path)
        if data is None or not data.strip():
            continue
        for kind in (KINDS[(number + shard) % len(KINDS)], KINDS[(number + 5 * shard + 7) % len(KINDS)]):
            made += changes([(path.name, data)], kind, times=1)
        _PLACES.clear()
    assert len(made) >= 50
    before = {f"src {i}/{i}.py": old for i, (old, _) in enumerate(made)}
    after = {f"src {i}/{i}.py": new for i, (_, new) in enumerate(made)}
    diff = unified_diff(before, after)
    assert read_patch(diff, before) == {n: d for n, d in after.items() if d != before[n]}
    applied(tmp_path / "git", before, diff, ["git", "apply"])
    assert {name: (tmp_path / "git" / name).read_bytes() for name in after} == after


def applied(root: Path, before: dict[str, bytes], diff: str, command: list[str]) -> None:
    for name, data in before.items():
        (root / name).parent.mkdir(parents=True)
        (root / name).write_bytes(data)
    subprocess.run(command, cwd=root, input=diff.encode("utf-8", "surrogateescape"), check=True)
