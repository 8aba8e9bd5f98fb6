"""Outcomes as the pipeline makes them, for the tests of the edges."""

from __future__ import annotations

import difflib
from dataclasses import replace

from autodetach.model import (
    Candidate,
    Cause,
    Device,
    Diagnosis,
    Edit,
    Evidence,
    Failure,
    FailureKind,
    Frame,
    Level,
    Outcome,
    Passed,
    Rejected,
    Span,
    Status,
    Trial,
)

BEFORE = """import torch

# Übertrag: der Zustand wandert von Schritt zu Schritt
läufer = torch.nn.GRUCell(4, 8)
zustand = torch.zeros(2, 8)
öffner = torch.optim.SGD(läufer.parameters(), lr=0.1)
for schritt in range(9):
    zustand = läufer(torch.randn(2, 4), zustand)  # 状態
    größe = zustand.pow(2).mean(); größe.backward()
    öffner.step()
"""
STORE = "läufer(torch.randn(2, 4), zustand)"
AFTER = BEFORE.replace(STORE, STORE + ".detach()")
MESSAGE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have "
    "already been freed)."
)


def diff_of(before: str, after: str, file: str) -> str:
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{file}", f"b/{file}")
    return "".join(lines)


def span_of(text: str, piece: str, file: str = "train.py") -> Span:
    """The only place of ``piece``, which lies in one line, as CPython would give it."""
    head = text[: text.index(piece)]
    line = head.count("\n") + 1
    column = len(head.rpartition("\n")[2].encode())
    return Span(file, line, column, line, column + len(piece.encode()))


_FAILURE = Failure(
    FailureKind.SECOND_BACKWARD,
    MESSAGE,
    (Frame(span_of(BEFORE, "größe.backward()"), "<module>", True),),
    steps=1,
    backwards=1,
)
DIAGNOSIS = Diagnosis(
    Cause.CARRIED_STATE,
    _FAILURE,
    (
        Evidence("`zustand` of step 1 was made here, with the graph of that step", span_of(BEFORE, STORE)),
        Evidence("backward of step 1 freed that graph", span_of(BEFORE, "größe.backward()")),
        Evidence("step 2 reads `zustand` again and ties its own graph to the freed one", span_of(BEFORE, STORE)),
    ),
)


def _candidate(remedy: str, summary: str, *edits: Edit, lines: int = 1) -> Candidate:
    return Candidate(remedy, summary, edits, changed_lines=lines, changed_tokens=4)


END_OF_STORE = BEFORE.index(STORE) + len(STORE)
CHOSEN = Trial(
    _candidate(
        "detach-at-store",
        "detach `zustand` where it is stored",
        Edit("train.py", END_OF_STORE, END_OF_STORE, ".detach()"),
    ),
    diff_of(BEFORE, AFTER, "train.py"),
    (
        Passed("runs", "12 optimizer steps beyond the failure"),
        Passed("same values"),
        Passed("same training", "equal to the reference run from the first step on"),
        Passed("nobody starves"),
        Passed("no growth"),
        Passed("only the intended change"),
    ),
    Level.SAFE,
    1.25,
)
FALLEN = Trial(
    _candidate("detach-loss", "detach the loss before backward"),
    diff_of(BEFORE, BEFORE.replace("größe.backward()", "größe.detach().backward()"), "train.py"),
    (Passed("runs"), Rejected("nobody starves", "no parameter of `läufer` gets a gradient any more")),
    None,
    0.5,
)
REPAIRED = Outcome(
    Status.REPAIRED,
    diff=CHOSEN.diff,
    diagnosis=DIAGNOSIS,
    trials=(FALLEN, CHOSEN),
    chosen=CHOSEN,
    isolation="bubblewrap",
    interpreter="/usr/bin/python3",
    torch="2.13.0",
    steps_proved=12,
    seconds=4.2,
    patched={"train.py": AFTER.encode()},
    originals={"train.py": BEFORE.encode()},
)
UNREPAIRED = replace(
    REPAIRED,
    status=Status.UNREPAIRED,
    diff="",
    chosen=None,
    patched={},
    trials=(FALLEN,),
    device=Device("cuda", "NVIDIA H200"),
    steps_proved=0,
    diagnosis=replace(
        DIAGNOSIS,
        cause=Cause.BUILT_ONCE,
        ways_out=(
            "move the computation into the loop: every step then trains it, and pays for it",
            "detach it: it stays as it is for ever, which is right only if it is not meant to learn",
        ),
    ),
)
CLEAN = Outcome(Status.CLEAN, isolation="bubblewrap", interpreter="/usr/bin/python3", torch="2.13.0")
FAILED = replace(
    CLEAN,
    status=Status.FAILED_OTHERWISE,
    detail='Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n'
    "ZeroDivisionError: \x1b[31mred\x1b[0m",
)
NOT_REACHED = replace(CLEAN, status=Status.NOT_REACHED, detail="stopped after 300 s, 4100 optimizer steps in")
ALL = {
    "repaired": REPAIRED,
    "unrepaired": UNREPAIRED,
    "clean": CLEAN,
    "failed": FAILED,
    "not-reached": NOT_REACHED,
}
