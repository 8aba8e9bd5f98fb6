"""CPython's positions lead to the very expression, in every expression of many real files."""

import ast
import sys

import pytest

from autodetach.model import Span
from autodetach.source.module import SourceModule

_NO_EXPRESSIONS = (ast.Slice, ast.Starred)


EXACT_F_STRINGS = sys.version_info >= (3, 12)


def inside_f_strings(tree: ast.AST) -> set[ast.AST]:
    """What has no exact position: all of an f-string before 3.12, and its literal parts since."""
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    if not EXACT_F_STRINGS:
        return {part for node in strings for part in ast.walk(node) if part is not node}
    values = {part for node in strings for part in node.values}
    specs = {part.format_spec for part in values if isinstance(part, ast.FormattedValue) and part.format_spec}
    return {*values, *specs}


def bare_subscript_tuples(tree: ast.AST) -> set[ast.AST]:
    return {
        node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)
    }


def span_of(name: str, node: ast.expr) -> Span:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return Span(name, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


def without_context(node: ast.AST) -> str:
    dump = ast.dump(node)
    return dump.replace("ctx=Store()", "ctx=Load()").replace("ctx=Del()", "ctx=Load()")


def check(name: str, data: bytes, *, compare: bool = True) -> int:
    tree, module = ast.parse(data), SourceModule.parse(name, data)
    passed_over = inside_f_strings(tree) | bare_subscript_tuples(tree)
    seen = 0
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or isinstance(node, _NO_EXPRESSIONS) or node in passed_over:
            continue
        span = span_of(name, node)
        found = module.expression(span)
        assert found is not None, (name, ast.dump(node))
        assert found.span == span
        if compare and found.start < found.end and len(found.code) < 200:
            parsed = ast.parse(f"({found.code}\n)", mode="eval").body
            assert without_context(parsed) == without_context(node)
        seen += 1
    return seen


def test_every_expression_of_many_real_files(real_files):
    assert sum(check(name, data) for name, data in real_files) > 20_000


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffé = (a) + (b . c)\n",
        "x = f(a for a in b)\ny = f((a for a in b))\nz = (f) ( a for a in b )\n",
        "return_ = ((a, b)), (c), ()\nfor i in 1, 2: pass\nfor i, (j, k) in (x): pass\n",
        "\fx = 1\n\f\n\f    \nif x:\n    \f\n  \f    y = (x,\f1)\n",
        "if x:\r\n\ty = x \\\r\n\t+ 1; z = [y]\r\n",
        "x = (\n  # why\n  a\n  .b()\n)\n",
        "with (open(a) as b, c): pass\nwith (a): pass\nwith (a, b) as c: pass\n",
        "match (a, b), c:\n    case [x, {'k': v}] if (y := x): pass\n    case A.B(c=1): pass\n",
        "def f(a, /, b: int = (1), *c, d=2, **e) -> (x): return lambda a=1, *b: (yield)\n",
        "x: (int) = (yield_)\nx[(a)] += b\ndel (a), b\n@(a.b)\nclass C(D, metaclass=E): pass\n",
        "async def f():\n    x = await (g)(a)\n    return [b async for b in c if not (d)]\n",
        "x = 'a' 'b' f'{c}' \\\n 'd'\ny = -1 ** -(2); z = not (a < b <= (c)) and d or (e and f)\n",
        "x = a if (b) else c\nprint(*a, **b, k=(1))\nx[1:2, ::3]\n",
        "x = '''\né'''; y = é . z",
    ],
)
def test_every_expression_of_odd_files(text):
    assert check("odd.py", text.encode())


def test_latin_1_positions_are_utf8():
    assert check("odd.py", b"# coding: latin-1\nx = '\xe9'; y = ('\xe9\xe9', f(x))\n")


@pytest.mark.skipif(not EXACT_F_STRINGS, reason="positions within f-strings are exact from 3.12 on")
def test_positions_within_f_strings():
    module = SourceModule.parse("a.py", b"x = f'{a + b} {c!r:>{d}}'\n")
    found = module.expression(Span("a.py", 1, 7, 1, 12))
    assert found is not None and found.code == "a + b"


def test_no_expression_of_libcsts_own():
    module = SourceModule.parse("a.py", b"x = a and b and c or d\ny = 'a' 'b'\n")
    assert module.expression(Span("a.py", 1, 4, 1, 11)) is None  # CPython has a and b and c in one node
    assert module.expression(Span("a.py", 1, 4, 1, 17)) is not None
    assert module.expression(Span("a.py", 2, 4, 2, 7)) is None


def test_none_rather_than_a_near_expression():
    module = SourceModule.parse("a.py", b"x = abc.d\ndef f(arg, k=1): g(kw=2)\nimport a.b\n")
    assert module.expression(Span("a.py", 1, 4, 1, 6)) is None
    assert module.expression(Span("a.py", 1, 8, 1, 9)) is None  # an attribute's name
    assert module.expression(Span("a.py", 2, 6, 2, 9)) is None  # a parameter's name
    assert module.expression(Span("a.py", 2, 19, 2, 21)) is None  # a keyword
    assert module.expression(Span("a.py", 3, 7, 3, 10)) is None  # an import
    assert module.expression(Span("a.py", 9, 0, 9, 1)) is None
