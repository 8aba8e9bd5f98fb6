"""-i: what is shown, and what an answer does."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
import samples

from autodetach.errors import UsageError
from autodetach.model import Level, Status
from autodetach.report.choice import choose_patch


class Keyboard(io.StringIO):
    def isatty(self) -> bool:
        return True


UNSAFE = replace(samples.CHOSEN, level=Level.UNSAFE)
OUTCOME = replace(
    samples.UNREPAIRED, trials=(samples.FALLEN, UNSAFE, replace(samples.CHOSEN, level=Level.DISPLAY_ONLY))
)


def test_the_chosen_one_is_the_patch():
    shown = io.StringIO()
    outcome = choose_patch(OUTCOME, shown, Keyboard("7\nx\n1\n"))
    assert (outcome.status, outcome.chosen, outcome.diff) == (Status.REPAIRED, UNSAFE, UNSAFE.diff)
    assert outcome.patched == {"train.py": samples.AFTER.encode()}
    assert "1. [unsafe] detach `zustand` where it is stored\n--- a/train.py" in shown.getvalue()
    assert shown.getvalue().count("Which one? 1 to 1, 0 for none: ") == 3


@pytest.mark.parametrize("answer", ["0\n", ""])
def test_none_of_them(answer):
    outcome = choose_patch(samples.REPAIRED, io.StringIO(), Keyboard(answer))
    assert (outcome.status, outcome.diff, outcome.patched) == (Status.UNREPAIRED, "", {})


def test_nothing_to_choose_asks_nothing():
    shown = io.StringIO()
    assert choose_patch(samples.UNREPAIRED, shown, io.StringIO()) == samples.UNREPAIRED
    assert shown.getvalue() == ""


def test_nobody_there_to_answer():
    with pytest.raises(UsageError, match="needs a terminal"):
        choose_patch(OUTCOME, io.StringIO(), io.StringIO("1\n"))
