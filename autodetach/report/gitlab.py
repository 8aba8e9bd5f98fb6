"""GitLab's code quality report: an entry for each fault, with a fingerprint that outlives moving lines."""

from __future__ import annotations

from autodetach.model import Json, Outcome
from autodetach.report.faults import SOURCE, as_json, fingerprint_of, message_of, span_of
from autodetach.report.sources import Sources


class GitlabReport:
    def render(self, *outcomes: Outcome) -> str:
        return as_json([entry for outcome in outcomes for entry in _entries(outcome)])


def _entries(outcome: Outcome) -> list[Json]:
    diagnosis = outcome.diagnosis
    span = span_of(diagnosis) if diagnosis else None
    if diagnosis is None or span is None:
        return []
    return [
        {
            "description": message_of(outcome),
            "check_name": f"{SOURCE}/{diagnosis.cause}",
            "fingerprint": fingerprint_of(diagnosis, Sources(outcome.originals)),
            "severity": "major",
            "location": {"path": span.file, "lines": {"begin": span.line, "end": span.end_line}},
        }
    ]


make = GitlabReport
