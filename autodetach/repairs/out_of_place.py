"""A value that is needed for a gradient is overwritten: write the new one to a tensor of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import libcst as cst

from autodetach.diagnosis.findings import Findings
from autodetach.model import Candidate, Edit
from autodetach.repairs.interface import Example, candidate
from autodetach.source.edits.calls import drop_keyword
from autodetach.source.expression import Expression
from autodetach.source.statement import Statement

OPERATORS: dict[type[cst.BaseAugOp], str] = {
    cst.AddAssign: "+",
    cst.SubtractAssign: "-",
    cst.MultiplyAssign: "*",
    cst.DivideAssign: "/",
    cst.PowerAssign: "**",
}
PRODUCTS = (cst.Multiply, cst.Divide, cst.MatrixMultiply, cst.Power)
"""What binds more tightly than a sum."""


class OutOfPlace:
    """An augmented assignment or a method with an underscore overwrites what an earlier operation saved.

    The same operation out of place leaves the old value as it is, and binds the new one to the name.
    """

    name: ClassVar[str] = "out-of-place"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("an augmented assignment", "h = torch.sigmoid(x)\nh += 1\n", "h = torch.sigmoid(x)\nh = h + 1\n"),
        Example("a method", "h = x.exp()\nh.relu_()\n", "h = x.exp()\nh = h.relu()\n"),
        Example("a keyword", "r = F.relu(h, inplace=True)\n", "r = F.relu(h)\n"),
        Example("leave alone: nothing saved is overwritten", "h = x + 1\nh += 1\n", None),
    )

    def propose(self, findings: Findings, written: Iterable[str]) -> Iterable[Candidate]:
        """One candidate for each writing, and one for all of them."""
        edits: dict[Edit, str] = {}
        for site in written:
            frames = findings.frames(site)
            expression = findings.book.expression(frames[0].span) if frames else None
            statement = findings.book.statement(frames[0].span) if frames else None
            edit = rewritten(expression, statement)
            if edit is not None and statement is not None:
                edits[edit] = f"line {statement.span.line} out of place"
        modules = _modules(findings, edits)
        choices = [{edit: words} for edit, words in (edits | modules).items()]
        for chosen in [*choices, edits, edits | modules]:
            words = "; ".join(dict.fromkeys(chosen.values()))
            patch = candidate(findings.book, self.name, words, chosen)
            if patch is not None:
                yield patch


def rewritten(expression: Expression | None, statement: Statement | None) -> Edit | None:
    """The statement with the same operation out of place; None where it binds no plain name."""
    if statement is None:
        return None
    tree = statement.tree
    match statement.node:
        case cst.AugAssign(target=cst.Name(value=name), operator=operator, value=value) if type(operator) in OPERATORS:
            sign = OPERATORS[type(operator)]
            operand = Expression(tree, value)
            product = isinstance(value, cst.BinaryOperation) and isinstance(value.operator, PRODUCTS) and sign in "+-"
            one = operand.is_atom or operand.is_parenthesised or isinstance(value, cst.Integer) or product
            code = operand.outer_code if one else f"({operand.outer_code})"
            return Edit(tree.source.name, statement.start, statement.end, f"{name} = {name} {sign} {code}")
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=attr)) as call):
            if attr.value.endswith("_") and not attr.value.endswith("__"):
                end = tree.extent(attr)[1]
                code = statement.code[: end - 1 - statement.start] + tree.source.text[end : tree.extent(call)[1]]
                return Edit(tree.source.name, statement.start, statement.end, f"{name} = {code}")
    if expression is not None and isinstance(expression.node, cst.Call):
        return drop_keyword(expression, "inplace")
    return None


def _modules(findings: Findings, edits: Iterable[Edit]) -> dict[Edit, str]:
    """``nn.ReLU(inplace=True)`` in the files that have been read: who calls such a module does not show the keyword."""
    found: dict[Edit, str] = {}
    known = set(edits)
    for file in sorted(findings.book.originals):
        module = findings.book.module(file)
        for node in module.tree.expressions.values() if module is not None else ():
            match node:
                case cst.Call(func=cst.Attribute() | cst.Name(), args=[*args]) if any(
                    a.keyword is not None and a.keyword.value == "inplace" and _is_true(a.value) for a in args
                ):
                    assert module is not None
                    expression = Expression(module.tree, node)
                    edit = drop_keyword(expression, "inplace")
                    if edit is not None and edit not in known:
                        found[edit] = f"no inplace=True in line {expression.span.line}"
    return found


def _is_true(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "True"
