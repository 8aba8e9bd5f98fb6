"""Edits inside a call: its keywords, the method it calls, and other expressions put in the place of one."""

from __future__ import annotations

import libcst as cst

from autodetach.model import Edit
from autodetach.source.edits.lines import delete_statement
from autodetach.source.edits.splice import splice
from autodetach.source.expression import ATOMS, Expression, Role
from autodetach.source.statement import Decorator, Statement

_SAFE_ROLES = frozenset({Role.STORE, Role.ARGUMENT, Role.ITEM, Role.RETURN, Role.ITERATED})
"""Where any expression but a walrus or a bare tuple can stand without parentheses."""


def drop_keyword(call: Expression, keyword: str) -> Edit | None:
    """Take ``keyword=…`` out of a call, with its comma; with its line where it has one of its own."""
    node = call.node
    if not isinstance(node, cst.Call):
        return None
    index = _index_of(node, keyword)
    if index is None:
        return None
    tree, source = call.tree, call.tree.source
    text = source.text
    start, end = _extent(call, node.args[index])
    comma = node.args[index].comma
    behind = tree.extent(comma)[0] + 1 if isinstance(comma, cst.Comma) else end
    alone = _own_lines(call, start, behind)
    last = index + 1 == len(node.args)
    if alone and not (last and behind == end and index > 0):
        return Edit(source.name, *alone, "")
    if not last:
        following = _extent(call, node.args[index + 1])[0]
        if "#" not in text[behind:following]:
            return Edit(source.name, start, following, "")
        return Edit(source.name, start, behind, "")
    if index == 0:
        return Edit(source.name, start, behind, "")
    before = _extent(call, node.args[index - 1])[1]
    if "#" in text[before:start]:
        # A comment behind the argument before it: its comma stays and becomes a trailing one.
        return Edit(source.name, *alone, "") if alone else Edit(source.name, start, behind, "")
    return Edit(source.name, before, end, "")


def set_keyword(call: Expression, keyword: str, value: str) -> Edit | None:
    """Give a call ``keyword=value``: in the place of its present value, else behind the last argument."""
    node = call.node
    if not isinstance(node, cst.Call):
        return None
    tree, source = call.tree, call.tree.source
    index = _index_of(node, keyword)
    if index is not None:
        start, end = tree.outer_extent(node.args[index].value)
        return Edit(source.name, start, end, value)
    pair = f"{keyword}={value}"
    if not node.args:
        opening = _opening(call, node) + 1
        return Edit(source.name, opening, opening, pair)
    if Expression(tree, node.args[-1].value).is_bare_generator:
        return None
    start, end = _extent(call, node.args[-1])
    comma = node.args[-1].comma
    trailing = isinstance(comma, cst.Comma)
    behind = tree.extent(comma)[0] + 1 if isinstance(comma, cst.Comma) else end
    head = source.line_start(start)
    if source.text[head:start].strip() or source.line_start(call.end - 1) == source.line_start(end):
        return Edit(source.name, behind, behind, f" {pair}," if trailing else f", {pair}")
    # The last argument starts a line and the call is closed on a later one: the new one gets a line too.
    line_end = source.next_line(behind) - len(source.newline)
    comment = source.text[behind:line_end]
    text = f",{comment}{source.newline}{source.text[head:start]}{pair}{',' if trailing else ''}"
    return Edit(source.name, end, line_end, text)


def drop_method_call(call: Expression) -> Edit | None:
    """``x.method()`` → ``x``; a statement that does no more goes as a whole. None where a comment would."""
    node = call.node
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    receiver = Expression(call.tree, node.func.value)
    statement = call.statement
    if isinstance(statement.node, cst.Expr) and statement.node.value is node and receiver.is_name_like:
        return delete_statement(statement)
    source = call.tree.source
    if "#" in source.text[receiver.outer_end : _opening(call, node)]:
        return None
    return Edit(source.name, receiver.outer_end, call.end, "")


def _opening(call: Expression, node: cst.Call) -> int:
    """Where the arguments of a call start."""
    return call.tree.source.text.index("(", call.tree.outer_extent(node.func)[1])


def replace_expression(expression: Expression, code: str) -> Edit | None:
    """Put ``code`` in the place of an expression, parenthesised if need be. None if it cannot stand there."""
    if expression.is_target:
        return None
    try:
        node = cst.parse_expression(code)
    except cst.ParserSyntaxError:
        return None
    if expression.is_parenthesised and not expression.is_bare_generator:
        return splice(expression, code)
    bare_tuple = isinstance(node, cst.Tuple) and not node.lpar
    starred = isinstance(expression.tree.parents[expression.node], (cst.StarredElement, cst.StarredDictElement))
    safe = expression.role in _SAFE_ROLES and not starred
    fits = isinstance(node, ATOMS) or node.lpar or safe
    if bare_tuple or not fits or isinstance(node, (cst.NamedExpr, cst.Yield, cst.Lambda, cst.IfExp)):
        code = code if node.lpar else f"({code})"
    return splice(expression, code)


def drop_decorator(statement: Statement, decorator: Decorator) -> Edit | None:
    """Take a decorator out, with its lines."""
    source = statement.tree.source
    for node in getattr(statement.node, "decorators", ()):
        start, end = statement.tree.outer_extent(node.decorator)
        if source.span(start, end) == decorator.span:
            head = source.line_start(statement.tree.extent(node)[0])
            return Edit(source.name, head, source.next_line(end), "")
    return None


def _index_of(call: cst.Call, keyword: str) -> int | None:
    names = [arg.keyword.value if arg.keyword else None for arg in call.args]
    return names.index(keyword) if keyword in names else None


def _extent(call: Expression, arg: cst.Arg) -> tuple[int, int]:
    """From the keyword or star of an argument to the end of its value."""
    start, end = call.tree.outer_extent(arg.value)
    if arg.keyword:
        start = call.tree.extent(arg.keyword)[0]
    elif arg.star:
        start = call.tree.extent(arg)[0]
    return start, end


def _own_lines(call: Expression, start: int, end: int) -> tuple[int, int] | None:
    """The lines from ``start`` to ``end`` if nothing else (but a comment) stands on them."""
    source = call.tree.source
    head, tail = source.line_start(start), source.next_line(end)
    rest = source.text[end:tail].strip()
    if source.text[head:start].strip() or (rest and not rest.startswith("#")):
        return None
    return head, tail
