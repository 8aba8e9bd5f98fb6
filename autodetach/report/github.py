"""Workflow commands that GitHub's runner turns into annotations."""

from __future__ import annotations

from collections.abc import Iterator

from autodetach.model import Outcome, Status
from autodetach.report.blocks import blocks
from autodetach.report.faults import message_of, span_of
from autodetach.report.plain import neutral
from autodetach.report.words import FAILURES


class GithubReport:
    def render(self, *outcomes: Outcome) -> str:
        return "".join(f"{line}\n" for outcome in outcomes for line in _commands(outcome))


def _commands(outcome: Outcome) -> Iterator[str]:
    diagnosis = outcome.diagnosis
    if diagnosis is not None:
        span = span_of(diagnosis)
        place = {"file": span.file, "line": span.line, "endLine": span.end_line} if span else {}
        yield _command("error", {**place, "title": FAILURES[diagnosis.failure.kind]}, message_of(outcome))
    elif outcome.status is Status.FAILED_OTHERWISE:
        last = outcome.detail.strip().rpartition("\n")[2]
        yield _command("warning", {"title": "autodetach: the program failed in another way"}, last)
    elif outcome.status is Status.NOT_REACHED:
        yield _command("warning", {"title": "autodetach: no failure was reached"}, outcome.detail)
    for block in blocks(outcome.diff):
        place = {"file": block.file, "line": block.line, "endLine": block.last, "title": "autodetach: patch"}
        yield _command("notice", place, "\n".join(["replace by:", *block.new]))


def _command(name: str, properties: dict[str, object], message: str) -> str:
    words = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name} {words}::{_data(message)}"


def _data(text: str) -> str:
    """As the runner unescapes it: the percent sign first."""
    text = neutral(text, keep="\t\r\n")
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


make = GithubReport
