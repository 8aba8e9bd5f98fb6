"""One line on a terminal, nothing in a file, lines where asked for."""

from __future__ import annotations

import io
import os
import pty
import time

import samples

from autodetach.progress import Lines, Silent, TerminalLine, choose, wants_colour


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_which_one_is_chosen():
    assert isinstance(choose(Terminal(), {}, quiet=False, verbose=0), TerminalLine)
    assert isinstance(choose(Terminal(), {"TERM": "dumb"}, quiet=False, verbose=0), Silent)
    assert isinstance(choose(Terminal(), {}, quiet=True, verbose=2), Silent)
    assert isinstance(choose(io.StringIO(), {}, quiet=False, verbose=0), Silent)
    assert isinstance(choose(io.StringIO(), {}, quiet=False, verbose=1), Lines)


def test_the_line_shows_the_stage_and_is_wiped():
    terminal = Terminal()
    progress = TerminalLine(terminal)
    progress.stage("running train.py")
    progress.update("step 12 \x1b[2J")
    deadline = time.monotonic() + 10
    while "step 12" not in terminal.getvalue() and time.monotonic() < deadline:
        time.sleep(0.02)
    progress.done()
    progress.done()
    shown = terminal.getvalue()
    assert "running train.py · step 12 \\x1b[2J" in shown
    assert "\n" not in shown
    assert shown.endswith("\r\x1b[2K")


def test_a_terminal_of_few_letters_gets_plain_ones():
    terminal = Terminal()
    terminal.encoding = "ascii"
    progress = TerminalLine(terminal)
    progress.stage("läuft")
    time.sleep(0.15)
    progress.done()
    assert terminal.getvalue().isascii()


def test_a_terminal_that_is_gone_does_not_stop_the_work():
    controller, terminal = pty.openpty()
    stream = os.fdopen(terminal, "w")
    progress = TerminalLine(stream)
    os.close(controller)
    progress.stage("running")
    time.sleep(0.15)
    progress.done()


def test_lines_name_each_trial_and_why_it_fell():
    stream = io.StringIO()
    progress = Lines(stream)
    progress.stage("trying 2 patches")
    progress.trial(samples.FALLEN)
    progress.trial(samples.CHOSEN)
    progress.done()
    assert stream.getvalue().splitlines() == [
        "autodetach: trying 2 patches",
        "autodetach: rejected: detach the loss before backward: no parameter of `läufer` gets a gradient any more",
        "autodetach: safe: detach `zustand` where it is stored",
    ]


def test_colour():
    assert wants_colour(Terminal(), {})
    assert not wants_colour(Terminal(), {"TERM": "dumb"})
    assert not wants_colour(Terminal(), {"NO_COLOR": "1", "FORCE_COLOR": "1"})
    assert not wants_colour(io.StringIO(), {})
    assert not wants_colour(io.StringIO(), {"FORCE_COLOR": "0"})
    assert wants_colour(io.StringIO(), {"FORCE_COLOR": "1"})
