"""Something is deep-copied that holds a computed tensor with its graph: hold, or copy, a detached one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from autodetach.repairs.detach_for_numpy import DetachForNumpy
from autodetach.repairs.interface import Cut, Example
from autodetach.repairs.mending import Mending
from autodetach.source.edits.lines import insert_before


class DetachForCopy(DetachForNumpy):
    """``copy.deepcopy`` of a module (or a list, or a tensor) that keeps something computed, with its graph.

    Values can be copied, a graph cannot: what is only kept for the next step is stored detached, else detached for the
    copy.
    """

    name: ClassVar[str] = "detach-for-copy"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "a tensor",
            "best = copy.deepcopy(out)\n",
            "best = copy.deepcopy(out.detach())\n",
        ),
        Example(
            "an attribute of a module",
            "best = copy.deepcopy(net)\n",
            "net.seen = net.seen.detach()\nbest = copy.deepcopy(net)\n",
        ),
        Example("leave alone: parameters are leaves", "best = copy.deepcopy(net)\n", None),
    )

    def _before_the_call(self, mending: Mending) -> Iterable[Cut]:
        """A module's attribute, detached before the module is copied: the loss may have needed its graph."""
        for site, some in mending.sites.items():
            statement = mending.statement(site)
            for each in some if statement is not None else ():
                for name, structure in each.names:
                    if "." in name and structure == "tensor" and all(part.isidentifier() for part in name.split(".")):
                        assert statement is not None
                        edit = insert_before(statement, f"{name} = {name}.detach()")
                        if edit is not None:
                            words = f"detach {name} before line {statement.span.line}"
                            yield Cut(self.name, words, (edit,), frozenset({(site, each.value)}), 2)
