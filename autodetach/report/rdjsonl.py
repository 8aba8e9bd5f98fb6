"""Diagnostics for reviewdog, one JSON object a line.

Columns count UTF-8 bytes from 1, the end is exclusive. A suggestion replaces whole lines, the very ones that
its diagnostic stands at, for review comments can do nothing else; a patch in two places is two diagnostics
that name each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from autodetach.model import Diagnosis, Json, Outcome, Span
from autodetach.report.blocks import Block, blocks
from autodetach.report.faults import SOURCE, as_json, message_of, span_of
from autodetach.report.plain import neutral


class RdjsonlReport:
    def render(self, *outcomes: Outcome) -> str:
        return "".join(as_json(one, indent=None) for outcome in outcomes for one in _diagnostics(outcome))


def suggestions(found: Sequence[Block], message: str, code: str, related: Sequence[Json]) -> list[Json]:
    """One diagnostic for each block, each of which names the others."""
    return [
        {
            "message": message + _together(block, found),
            "location": {"path": block.file, "range": _lines(block)},
            "severity": "ERROR",
            "source": {"name": SOURCE},
            "code": {"value": code},
            "suggestions": [{"range": _lines(block), "text": "\n".join(block.new)}],
            "related_locations": list(related),
        }
        for block in found
    ]


def related_location(message: str, path: str, place: Json) -> Json:
    return {"message": message, "location": {"path": path, "range": place}}


def _diagnostics(outcome: Outcome) -> list[Json]:
    diagnosis = outcome.diagnosis
    if diagnosis is None:
        return []
    if outcome.chosen is not None:
        return suggestions(blocks(outcome.diff), message_of(outcome), diagnosis.cause, _related(diagnosis))
    span = span_of(diagnosis)
    location = {"location": {"path": span.file, "range": _range(span)}} if span else {}
    return [
        {
            "message": message_of(outcome),
            **location,
            "severity": "ERROR",
            "source": {"name": SOURCE},
            "code": {"value": diagnosis.cause},
            "related_locations": _related(diagnosis),
        }
    ]


def _related(diagnosis: Diagnosis) -> list[Json]:
    return [
        related_location(neutral(one.text), one.span.file, _range(one.span)) for one in diagnosis.evidence if one.span
    ]


def _together(block: Block, found: Sequence[Block]) -> str:
    others = ", ".join(other.place for other in found if other is not block)
    return f" Only together with the change at {others}." if others else ""


def _lines(block: Block) -> Json:
    end = len(block.old[-1].encode("utf-8", "surrogateescape")) + 1
    return {"start": {"line": block.line, "column": 1}, "end": {"line": block.last, "column": end}}


def _range(span: Span) -> Json:
    return {
        "start": {"line": span.line, "column": span.column + 1},
        "end": {"line": span.end_line, "column": span.end_column + 1},
    }


make = RdjsonlReport
