"""A line that detaches what an assignment unpacked: ``self.h, self.c = self.h.detach(), self.c.detach()``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from autodetach.diagnosis.findings import Findings, Point
from autodetach.repairs.interface import Cut, Example
from autodetach.repairs.places import OVERCUTS, structure_at
from autodetach.source.edits.detach import detach_targets_after
from autodetach.source.expression import Role

Path = tuple[int | str, ...]


class DetachAfterUnpacking:
    """The state comes out of a call together with values that must keep their graph.

    No part of the call's result can be wrapped where it stands; a line behind the assignment rebinds the names that
    carry the state.
    """

    name: ClassVar[str] = "detach-after-unpacking"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "one of two results is carried",
            "out, h = net(x, h)\n",
            "out, h = net(x, h)\nh = h.detach()\n",
        ),
    )

    def cuts(self, findings: Findings) -> Iterable[Cut]:
        for point in findings.points:
            expression = point.expression
            if expression.role is not Role.STORE or expression.statement.kind not in ("Assign", "AnnAssign"):
                continue
            for targets in expression.statement.target_structure:
                bound = list(_bound(targets, structure_at(point), (), point))
                if not bound:
                    continue
                groups = [bound] if len(bound) == 1 else [bound, *([b] for b in bound)]
                for group in groups:
                    cut = self._cut(findings, point, group)
                    if cut is not None:
                        yield cut

    def _cut(self, findings: Findings, point: Point, group: list[tuple[str, object, list[Path]]]) -> Cut | None:
        paths = [path for _, _, some in group for path in some]
        readings = findings.cut_at(point, paths)
        edit = detach_targets_after(point.expression.statement, [(target, s) for target, s, _ in group])
        if not readings or edit is None:
            return None
        names = ", ".join(target for target, _, _ in group)
        places = (findings.reference.places[point.places[path]] for path in paths if path in point.places)
        values = frozenset().union(*(place.watched for place in places))
        live = any(point.others.get(path) for path in paths) or bool(values & findings.live_values)
        return Cut(
            self.name,
            f"detach {names} after line {point.span.end_line}",
            (edit,),
            readings,
            1 + (OVERCUTS if live else 0),
        )


def _bound(targets: object, structure: object, path: Path, point: Point) -> Iterable[tuple[str, object, list[Path]]]:
    """Which target gets which part of the value: (target, structure, paths), where something has to be cut."""
    if isinstance(targets, str):
        paths = [p for p in point.places if p[: len(path)] == path]
        if paths and not targets.startswith("*"):
            yield targets, structure, paths
        return
    if isinstance(structure, list) and structure[0] in ("tuple", "list") and isinstance(targets, tuple | list):
        parts = structure[1]
        if len(parts) == len(targets):
            for i, (target, part) in enumerate(zip(targets, parts, strict=True)):
                yield from _bound(target, part, (*path, i), point)
