"""The published, versioned JSON (``docs/schema/outcome-1.json``), for other tools to read."""

from __future__ import annotations

from autodetach import __version__
from autodetach.model import Candidate, Diagnosis, Json, Outcome, Passed, Rejected, Span, Trial
from autodetach.report.faults import SOURCE, as_json
from autodetach.report.sources import Region, Sources
from autodetach.report.words import CAUSES

VERSION = 1


class JsonReport:
    def render(self, *outcomes: Outcome) -> str:
        tool = {"name": SOURCE, "version": __version__}
        return as_json({"version": VERSION, "tool": tool, "outcomes": [_outcome(one) for one in outcomes]})


def _outcome(outcome: Outcome) -> Json:
    sources = Sources(outcome.originals)
    return {
        "status": outcome.status,
        "detail": outcome.detail,
        "diagnosis": _diagnosis(outcome.diagnosis, sources) if outcome.diagnosis else None,
        "patch": _patch(outcome.chosen, outcome.diff) if outcome.chosen else None,
        "candidates": [_trial(trial, sources) for trial in outcome.trials],
        "proof": {
            "isolation": outcome.isolation or "none",
            "device": {
                "kind": outcome.device.kind,
                "name": outcome.device.name,
                "asked_for": outcome.device.asked_for,
            },
            "interpreter": outcome.interpreter,
            "torch": outcome.torch,
            "steps": outcome.steps_proved,
        },
        "seconds": outcome.seconds,
        "notes": list(outcome.notes),
    }


def _diagnosis(diagnosis: Diagnosis, sources: Sources) -> Json:
    failure = diagnosis.failure
    return {
        "cause": diagnosis.cause,
        "explanation": CAUSES[diagnosis.cause],
        "failure": {
            "kind": failure.kind,
            "message": failure.message,
            "steps": failure.steps,
            "backwards": failure.backwards,
            "chain": [
                {
                    "function": frame.function,
                    "editable": frame.editable,
                    "span": _span(frame.span, sources),
                }
                for frame in failure.chain
            ],
        },
        "evidence": [
            {"text": one.text, "span": _span(one.span, sources) if one.span else None} for one in diagnosis.evidence
        ],
        "ways_out": list(diagnosis.ways_out),
    }


def _patch(chosen: Trial, diff: str) -> Json:
    candidate = chosen.candidate
    return {"diff": diff, "remedy": candidate.remedy, "summary": candidate.summary, "level": chosen.level}


def _trial(trial: Trial, sources: Sources) -> Json:
    candidate = trial.candidate
    return {
        "remedy": candidate.remedy,
        "summary": candidate.summary,
        "level": trial.level,
        "changed_lines": candidate.changed_lines,
        "changed_tokens": candidate.changed_tokens,
        "seconds": trial.seconds,
        "diff": trial.diff,
        "edits": _edits(candidate, sources),
        "verdicts": [_verdict(verdict) for verdict in trial.verdicts],
    }


def _edits(candidate: Candidate, sources: Sources) -> list[Json]:
    placed = [(edit, sources.region_of_edit(edit)) for edit in candidate.edits]
    return [{"span": _region(edit.file, region), "text": edit.text} for edit, region in placed if region is not None]


def _verdict(verdict: Passed | Rejected) -> Json:
    passed = isinstance(verdict, Passed)
    text = verdict.detail if isinstance(verdict, Passed) else verdict.reason
    return {"criterion": verdict.criterion, "passed": passed, "text": text}


def _span(span: Span, sources: Sources) -> Json:
    """Columns are null where the file's text is not at hand to count code points in."""
    region = sources.region(span)
    if region is not None:
        return _region(span.file, region)
    columns = {"column": None, "end_column": None}
    return {"file": span.file, "line": span.line, "end_line": span.end_line, **columns}


def _region(file: str, region: Region) -> Json:
    return {
        "file": file,
        "line": region.line,
        "column": region.column,
        "end_line": region.end_line,
        "end_column": region.end_column,
    }


make = JsonReport
