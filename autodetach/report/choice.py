"""``-i``: the user chooses among the candidates that passed."""

from __future__ import annotations

from dataclasses import replace
from typing import TextIO

from autodetach.errors import UsageError
from autodetach.model import Level, Outcome, Status, Trial
from autodetach.report.plain import neutral
from autodetach.source.apply import apply_all
from autodetach.source.module import SourceModule


def insist_on_terminal(answers: TextIO | None) -> None:
    """Raises UsageError where nobody can answer: better before the program has run for minutes than behind it."""
    if answers is None or not answers.isatty():
        raise UsageError("-i asks a question: it needs a terminal")


def choose_patch(outcome: Outcome, question: TextIO, answers: TextIO) -> Outcome:
    """The outcome with the chosen patch, or with none. Raises UsageError where nobody can answer."""
    trials = [trial for trial in outcome.trials if trial.level in (Level.SAFE, Level.UNSAFE)]
    if not trials:
        return outcome
    insist_on_terminal(answers)
    for number, trial in enumerate(trials, 1):
        summary = neutral(trial.candidate.summary)
        question.write(f"\n{number}. [{trial.level}] {summary}\n")
        question.write(neutral(trial.diff, keep="\t\n"))
    number = _ask(len(trials), question, answers)
    return _with(outcome, trials[number - 1]) if number else _with(outcome, None)


def _ask(most: int, question: TextIO, answers: TextIO) -> int:
    while True:
        question.write(f"\nWhich one? 1 to {most}, 0 for none: ")
        question.flush()
        answer = answers.readline()
        if not answer:
            return 0
        if answer.strip().isdecimal() and int(answer) <= most:
            return int(answer)


def _with(outcome: Outcome, chosen: Trial | None) -> Outcome:
    if chosen is None:
        return replace(outcome, status=Status.UNREPAIRED, chosen=None, diff="", patched={})
    touched = {edit.file for edit in chosen.candidate.edits}
    modules = {file: SourceModule.parse(file, outcome.originals[file]) for file in touched}
    patched = apply_all(modules, chosen.candidate.edits)
    return replace(outcome, status=Status.REPAIRED, chosen=chosen, diff=chosen.diff, patched=patched)
