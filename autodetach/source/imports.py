"""Under which name a file knows a module."""

from __future__ import annotations

import libcst as cst

from autodetach.source.module import SourceModule
from autodetach.source.names import names_written


def name_of(module: SourceModule, wanted: str) -> str | None:
    """The name that an ``import`` at the top of the file binds to the module ``wanted``; None where there is none."""
    for statement in module.statements:
        if isinstance(statement.node, cst.Import):
            for alias in statement.node.names:
                if alias.evaluated_name == wanted:
                    return alias.evaluated_alias or wanted
    return None


def imported(module: SourceModule) -> frozenset[str]:
    """The names that imports at the top of the file bind: modules, functions and classes, hardly ever a tensor."""
    imports = (s.node for s in module.statements if isinstance(s.node, cst.Import | cst.ImportFrom))
    return frozenset(name for node in imports for name in names_written(node))


def written(module: SourceModule, wanted: str, member: str) -> str | None:
    """How the file may write ``wanted.member``: by the module's name, or by one imported from it."""
    known = name_of(module, wanted)
    if known is not None:
        return f"{known}.{member}"
    for statement in module.statements:
        node = statement.node
        if isinstance(node, cst.ImportFrom) and node.module is not None and not isinstance(node.names, cst.ImportStar):
            if statement.tree.code(node.module) != wanted or node.relative:
                continue
            for alias in node.names:
                if alias.evaluated_name == member:
                    return alias.evaluated_alias or member
    return None
