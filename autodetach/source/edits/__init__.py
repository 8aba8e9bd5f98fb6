"""Edits of a source file as splices of its text: every byte outside them stays as it was.

Each function returns ``None`` where the edit cannot be made cleanly; none of them guesses.
"""

from autodetach.source.edits.calls import (
    drop_decorator,
    drop_keyword,
    drop_method_call,
    replace_expression,
    set_keyword,
)
from autodetach.source.edits.containers import Structure, detached_code, has_tensor
from autodetach.source.edits.detach import append_call, detach_after, detach_expression, detach_targets_after, rebind
from autodetach.source.edits.lines import delete_statement, insert_after, insert_at_start, insert_before
from autodetach.source.edits.move import move_out_of_with, move_statements, wrap_in_with
from autodetach.source.edits.size import size

__all__ = [
    "Structure",
    "append_call",
    "delete_statement",
    "detach_after",
    "detach_expression",
    "detach_targets_after",
    "detached_code",
    "drop_decorator",
    "drop_keyword",
    "drop_method_call",
    "has_tensor",
    "insert_after",
    "insert_at_start",
    "insert_before",
    "move_out_of_with",
    "move_statements",
    "rebind",
    "replace_expression",
    "set_keyword",
    "size",
    "wrap_in_with",
]
