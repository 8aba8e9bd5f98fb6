"""SARIF 2.1.0, for code scanning. Columns are code points from 1; the fix travels in ``fixes``.

GitHub shows the alert and the path that leads to it, not the fix.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from urllib.parse import quote

from autodetach import __version__
from autodetach.model import Cause, Diagnosis, Json, Outcome, Span, Status, Trial
from autodetach.report.faults import SOURCE, as_json, fingerprint_of, message_of, span_of
from autodetach.report.plain import neutral
from autodetach.report.sources import Region, Sources
from autodetach.report.words import CAUSES, FAILURES

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


class SarifReport:
    def render(self, *outcomes: Outcome) -> str:
        faults = [(outcome, outcome.diagnosis) for outcome in outcomes if outcome.diagnosis]
        causes = sorted({diagnosis.cause for _, diagnosis in faults})
        driver = {
            "name": SOURCE,
            "version": __version__,
            "rules": [{"id": cause, "fullDescription": {"text": CAUSES[cause]}} for cause in causes],
        }
        run = {
            "tool": {"driver": driver},
            "columnKind": "unicodeCodePoints",
            "invocations": [{"executionSuccessful": _was_judged(outcome)} for outcome in outcomes],
            "results": [_result(outcome, diagnosis, causes) for outcome, diagnosis in faults],
        }
        return as_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _was_judged(outcome: Outcome) -> bool:
    return outcome.status not in (Status.FAILED_OTHERWISE, Status.NOT_REACHED)


def _result(outcome: Outcome, diagnosis: Diagnosis, causes: Sequence[Cause]) -> Json:
    sources = Sources(outcome.originals)
    span = span_of(diagnosis)
    fix = _fix(outcome.chosen, sources) if outcome.chosen else None
    return {
        "ruleId": diagnosis.cause,
        "ruleIndex": causes.index(diagnosis.cause),
        "level": "error",
        "message": {"text": message_of(outcome)},
        "locations": [_location(span, sources)] if span else [],
        "codeFlows": [{"threadFlows": [{"locations": _flow(diagnosis, span, sources)}]}] if span else [],
        "partialFingerprints": {f"{SOURCE}/v1": fingerprint_of(diagnosis, sources)},
        **({"fixes": [fix]} if fix else {}),
    }


def _flow(diagnosis: Diagnosis, span: Span, sources: Sources) -> list[Json]:
    """Where it was made, where its graph was freed, … and last the failing backward."""
    steps = [(neutral(one.text), one.span) for one in diagnosis.evidence if one.span]
    steps.append((FAILURES[diagnosis.failure.kind], span))
    return [{"location": _location(place, sources) | {"message": {"text": text}}} for text, place in steps]


def _fix(chosen: Trial, sources: Sources) -> Json | None:
    """None where a file's text is not at hand to count positions in: half a fix is none."""
    placed = [(edit, sources.region_of_edit(edit)) for edit in sorted(chosen.candidate.edits)]
    if not placed or any(region is None for _, region in placed):
        return None
    changes = [
        {
            "artifactLocation": _artifact(file),
            "replacements": [
                {"deletedRegion": _region(region), "insertedContent": {"text": edit.text}}
                for edit, region in edits
                if region is not None
            ],
        }
        for file, edits in groupby(placed, lambda pair: pair[0].file)
    ]
    return {"description": {"text": neutral(chosen.candidate.summary)}, "artifactChanges": changes}


def _location(span: Span, sources: Sources) -> Json:
    region = sources.region(span)
    lines = {"startLine": span.line, "endLine": span.end_line}
    place = {"artifactLocation": _artifact(span.file), "region": _region(region) if region else lines}
    return {"physicalLocation": place}


def _artifact(file: str) -> Json:
    return {"uri": ("file://" if file.startswith("/") else "") + quote(file, errors="surrogateescape")}


def _region(region: Region) -> Json:
    return {
        "startLine": region.line,
        "startColumn": region.column,
        "endLine": region.end_line,
        "endColumn": region.end_column,
    }


make = SarifReport
