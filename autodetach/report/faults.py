"""What the machine-readable formats say of a fault: its place, its message, its fingerprint."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from autodetach.model import Diagnosis, Outcome, Span
from autodetach.report.plain import neutral
from autodetach.report.sources import Sources
from autodetach.report.words import CAUSES, FAILURES, proof

SOURCE = "autodetach"
MOST_SHOWN = 3


def span_of(diagnosis: Diagnosis) -> Span | None:
    """Where the fault is shown: the failing call in the innermost file that its user may edit."""
    frames = [frame for frame in diagnosis.failure.chain if frame.editable] or diagnosis.failure.chain
    spans = [frame.span for frame in frames] + [one.span for one in diagnosis.evidence if one.span]
    return spans[0] if spans else None


def message_of(outcome: Outcome) -> str:
    """The fault and its remedy in a few sentences, without line breaks."""
    diagnosis = outcome.diagnosis
    if diagnosis is None:
        return ""
    fault = f"{FAILURES[diagnosis.failure.kind]} ({diagnosis.cause}). {CAUSES[diagnosis.cause]}"
    if outcome.chosen is None:
        shown = [trial for trial in outcome.trials if trial.level is not None][:MOST_SHOWN]
        others = "".join(f" Not taken [{trial.level}]: {neutral(trial.candidate.summary)}." for trial in shown)
        ways = "".join(f" Way out: {neutral(way)}." for way in diagnosis.ways_out)
        return f"{fault} No patch is verified.{others}{ways}"
    summary = neutral(outcome.chosen.candidate.summary)
    return f"{fault} Remedy [{outcome.chosen.level}]: {summary}; {proof(outcome)}."


def fingerprint_of(diagnosis: Diagnosis, sources: Sources) -> str:
    """The same for the same fault when lines move: it is made of names and of the failing line's own text."""
    span = span_of(diagnosis)
    excerpt = sources.excerpt(span) if span else None
    chain = diagnosis.failure.chain
    parts = [diagnosis.cause, diagnosis.failure.kind, chain[0].function if chain else ""]
    parts += [span.file if span else "", excerpt.text if excerpt else ""]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()


def as_json(document: Any, indent: int | None = 2) -> str:
    """JSON in readable UTF-8; lone surrogates (bytes that were no UTF-8) are written as escapes."""
    text = json.dumps(document, ensure_ascii=False, indent=indent)
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"
