"""An expression of a file: its extent, what is done with its value, and how it may be extended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import libcst as cst

from autodetach.model import Span
from autodetach.source.statement import Statement, statement_of
from autodetach.source.tree import INTERPOLATED, Tree

ATOMS = (
    cst.Name,
    cst.Attribute,
    cst.Subscript,
    cst.Call,
    cst.List,
    cst.Set,
    cst.Dict,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
    cst.GeneratorExp,
    cst.SimpleString,
    cst.FormattedString,
    cst.Float,
    cst.Imaginary,
    cst.Ellipsis,
)
"""What ``.attribute`` can follow directly."""


class Role(StrEnum):
    """What becomes of an expression's value."""

    STORE = "store"
    ITEM = "item"
    ARGUMENT = "argument"
    RECEIVER = "receiver"
    RETURN = "return"
    YIELD = "yield"
    ITERATED = "iterated"
    SUBSCRIPTED = "subscripted"
    OPERAND = "operand"
    OTHER = "other"


_VALUE_ROLES: tuple[tuple[type[cst.CSTNode], str, Role], ...] = (
    (cst.Assign, "value", Role.STORE),
    (cst.AnnAssign, "value", Role.STORE),
    (cst.AugAssign, "value", Role.STORE),
    (cst.NamedExpr, "value", Role.STORE),
    (cst.Element, "value", Role.ITEM),
    (cst.StarredElement, "value", Role.ITEM),
    (cst.DictElement, "value", Role.ITEM),
    (cst.StarredDictElement, "value", Role.ITEM),
    (cst.Arg, "value", Role.ARGUMENT),
    (cst.Attribute, "value", Role.RECEIVER),
    (cst.Return, "value", Role.RETURN),
    (cst.Yield, "value", Role.YIELD),
    (cst.From, "item", Role.YIELD),
    (cst.For, "iter", Role.ITERATED),
    (cst.CompFor, "iter", Role.ITERATED),
    (cst.Subscript, "value", Role.SUBSCRIPTED),
    (cst.UnaryOperation, "expression", Role.OPERAND),
    (cst.BinaryOperation, "left", Role.OPERAND),
    (cst.BinaryOperation, "right", Role.OPERAND),
    (cst.BooleanOperation, "left", Role.OPERAND),
    (cst.BooleanOperation, "right", Role.OPERAND),
    (cst.Comparison, "left", Role.OPERAND),
    (cst.ComparisonTarget, "comparator", Role.OPERAND),
)

_TARGET_FIELDS: tuple[tuple[type[cst.CSTNode], str], ...] = (
    (cst.AssignTarget, "target"),
    (cst.AnnAssign, "target"),
    (cst.AugAssign, "target"),
    (cst.NamedExpr, "target"),
    (cst.For, "target"),
    (cst.CompFor, "target"),
    (cst.AsName, "name"),
    (cst.Del, "target"),
)


@dataclass(frozen=True)
class Expression:
    """``start`` and ``end`` are CPython's: without parentheses around it (a tuple's own are part of it)."""

    tree: Tree
    node: cst.BaseExpression

    def __repr__(self) -> str:
        return f"Expression({self.code!r}, {self.span.place})"

    @property
    def start(self) -> int:
        return self.tree.extent(self.node)[0]

    @property
    def end(self) -> int:
        return self.tree.extent(self.node)[1]

    @property
    def outer_start(self) -> int:
        return self.tree.outer_extent(self.node)[0]

    @property
    def outer_end(self) -> int:
        return self.tree.outer_extent(self.node)[1]

    @property
    def span(self) -> Span:
        return self.tree.source.span(self.start, self.end)

    @property
    def code(self) -> str:
        return self.tree.source.text[self.start : self.end]

    @property
    def outer_code(self) -> str:
        return self.tree.source.text[self.outer_start : self.outer_end]

    @property
    def statement(self) -> Statement:
        return statement_of(self.tree, self.node)

    @property
    def parent(self) -> Expression | None:
        """The expression it is a part of, within the same statement."""
        node = self.tree.parents.get(self.node)
        while node is not None and not isinstance(node, (cst.BaseSmallStatement, cst.BaseStatement)):
            if isinstance(node, cst.BaseExpression) and not isinstance(node, cst.StarredElement):
                return Expression(self.tree, node)
            node = self.tree.parents.get(node)
        return None

    @property
    def children(self) -> tuple[Expression, ...]:
        """The expressions that are its direct parts, in the order of the text."""
        return tuple(Expression(self.tree, node) for node in _parts(self.tree, self.node))

    @property
    def is_parenthesised(self) -> bool:
        return (self.outer_start, self.outer_end) != (self.start, self.end)

    @property
    def in_f_string(self) -> bool:
        """Within the braces of an f-string, where quotes, braces and colons would be misread."""
        parent = self.parent
        return parent is not None and (isinstance(parent.node, INTERPOLATED) or parent.in_f_string)

    @property
    def is_bare_generator(self) -> bool:
        """A generator that shares its parentheses with the call whose only argument it is."""
        return isinstance(self.node, cst.GeneratorExp) and not self.node.lpar

    @property
    def is_name_like(self) -> bool:
        """A name, a dotted name, or such a thing indexed by a constant or a name: harmless to repeat."""
        return is_name_like(self.node)

    @property
    def is_atom(self) -> bool:
        """Binds at least as tightly as an attribute access, even without parentheses around it."""
        return isinstance(self.node, ATOMS) or (isinstance(self.node, cst.Tuple) and bool(self.node.lpar))

    @property
    def parenthesise_for_attribute(self) -> bool:
        """Whether ``.attribute`` can only follow once parentheses are put around it."""
        return not self.is_atom and not self.is_parenthesised

    @property
    def is_target(self) -> bool:
        """Assigned to or deleted rather than read, alone or within a tuple of targets; or a match pattern."""
        node: cst.CSTNode = self.node
        while True:
            parent = self.tree.parents[node]
            if isinstance(parent, (cst.MatchPattern, cst.MatchMappingElement)):
                return True
            for kind, field in _TARGET_FIELDS:
                if isinstance(parent, kind) and getattr(parent, field) is node:
                    return True
            if not isinstance(parent, (cst.Tuple, cst.List, cst.Element, cst.StarredElement)):
                return False
            node = parent

    @property
    def role(self) -> Role:
        parent = self.tree.parents[self.node]
        if self.is_target or (isinstance(parent, cst.Arg) and not self._argument_of_call(parent)):
            return Role.OTHER
        for kind, field, role in _VALUE_ROLES:
            if isinstance(parent, kind) and getattr(parent, field) is self.node:
                return role
        return Role.OTHER

    def _argument_of_call(self, arg: cst.Arg) -> bool:
        return isinstance(self.tree.parents[arg], cst.Call)

    @property
    def targets(self) -> tuple[str, ...]:
        """For a stored value, or an element of a stored tuple: the code of each target it ends in."""
        return tuple(self.tree.code(target) for target in self.target_nodes)

    @property
    def target_nodes(self) -> tuple[cst.BaseExpression, ...]:
        """As ``targets``, but the nodes."""
        parent = self.tree.parents[self.node]
        match parent:
            case cst.Assign() if parent.value is self.node:
                return tuple(target.target for target in parent.targets)
            case cst.AnnAssign() | cst.AugAssign() | cst.NamedExpr() if parent.value is self.node:
                return (parent.target,)
            case cst.Element():
                display = self.tree.parents[parent]
                if isinstance(display, (cst.Tuple, cst.List)):
                    return self._element_targets(display, display.elements.index(parent))
        return ()

    def _element_targets(self, display: cst.Tuple | cst.List, index: int) -> tuple[cst.BaseExpression, ...]:
        found: list[cst.BaseExpression] = []
        for target in Expression(self.tree, display).target_nodes:
            if not isinstance(target, (cst.Tuple, cst.List)) or len(target.elements) != len(display.elements):
                return ()
            if any(isinstance(e, cst.StarredElement) for e in (*target.elements, *display.elements)):
                return ()
            found.append(target.elements[index].value)
        return tuple(found)


def is_name_like(node: cst.CSTNode) -> bool:
    """Whether the node can be written a second time without evaluating anything of consequence twice."""
    match node:
        case cst.Name():
            return True
        case cst.Attribute(value=value):
            return is_name_like(value)
        case cst.Subscript(value=value, slice=[cst.SubscriptElement(slice=cst.Index(value=index, star=None))]):
            if isinstance(index, cst.UnaryOperation) and isinstance(index.operator, cst.Minus):
                index = index.expression
            return is_name_like(value) and isinstance(index, (cst.Name, cst.Integer, cst.SimpleString))
    return False


def _parts(tree: Tree, node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    for child in node.children:
        if isinstance(child, cst.BaseExpression) and not isinstance(child, cst.StarredElement):
            if tree.expressions.get(tree.extent(child)) is child:
                yield child
        else:
            yield from _parts(tree, child)
