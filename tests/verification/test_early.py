"""A wrong patch's run ends once its verdict is sure, and another one may be under way: the same is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autodetach.diagnosis.reader import read
from autodetach.diagnosis.recording import Recording
from autodetach.laboratory import Horizon, Laboratory
from autodetach.model import Candidate, Edit, Failure, FailureKind, Level, Passed, Rejected
from autodetach.runner.project import Project
from autodetach.settings import Settings
from autodetach.source.book import SourceBook
from autodetach.verification import criteria
from autodetach.verification.early import Early
from autodetach.verification.judge import Judge
from autodetach.verification.standard import Standard

SITE = {"event": "site", "site": "s", "chain": []}


def events(*params, losses=None, grads=1.0):
    """What a run says whose single parameter takes these values: a backward and a step for each."""
    losses = losses or [1.0] * len(params)
    said = [SITE]
    for n, (value, loss) in enumerate(zip(params, losses, strict=True), 1):
        said.append({
            "event": "backward", "process": 0, "n": n, "call": "backward", "site": "s", "steps": n - 1,
            "loss": [loss], "retain": False, "create": False,
        })  # fmt: skip
        said.append({
            "event": "step", "process": 0, "n": n, "optimizer": 0, "site": "s", "params": [[value, value]],
            "grads": [grads], "backwards": n, "devices": [],
        })  # fmt: skip
    return said


def standard(reference, broken=None):
    failure = Failure(FailureKind.SECOND_BACKWARD, "", (), 1, 1)
    observed = replace(broken or read(events(1.0)), failure=failure)
    return Standard(observed, reference, reference.progress if reference else 5)


def told(early, said):
    """How many events it took until it had heard enough; None if it never had."""
    return next((number for number, event in enumerate(said) if early(event)), None)


GOOD = events(1.0, 2.0, 3.0, 4.0)


def test_a_right_run_is_heard_to_its_end():
    early = Early(standard(read(GOOD)), same_values=True)
    assert told(early, GOOD) is None and early.verdicts == []


@pytest.mark.parametrize(
    ("said", "at"),
    [
        (events(1.0, 2.5, 3.0, 4.0), 4),
        (events(1.0, 2.0, 3.0, 4.0, grads=None), 2),
        (events(1.0, 2.0, 3.0, 4.0, grads=2.0), 2),
    ],
    ids=["another parameter", "nothing is fed", "another gradient"],
)
def test_a_wrong_run_is_heard_to_where_it_differs(said, at):
    reference = read(GOOD)
    early = Early(standard(reference), same_values=True)
    assert told(early, said) == at
    whole = criteria.same_training(read(said), reference, criteria.Spread())
    assert isinstance(whole, Rejected) and early.verdicts[-1] == whole
    assert early.verdicts[0] == Passed("runs", f"{at // 2} steps, and ended there")


def test_a_loss_that_was_another_before_any_update():
    said = events(1.0, 2.0, 3.0, 4.0, losses=[1.5, 1.0, 1.0, 1.0])
    early = Early(standard(read(GOOD)), same_values=True)
    assert told(early, said) == 1 and early.verdicts[-1].criterion == "same values"
    assert told(Early(standard(read(GOOD)), same_values=False), said) is None
    later = events(1.0, 2.0, 3.0, 4.0, losses=[1.0, 1.5, 1.0, 1.0])  # after an update the training tells
    assert told(Early(standard(read(GOOD)), same_values=True), later) is None


def of_process(number, name, said):
    return [{"event": "hello", "process": number, "name": name}, *({**event, "process": number} for event in said)]


@pytest.mark.parametrize("followed", ["", "Worker-2"])
def test_what_other_processes_and_broken_events_say_counts_for_nothing(followed):
    """The one that counts is the one whose training the reference is."""
    numbers = {"": 0, "Worker-1": 7, "Worker-2": 8}
    right = of_process(numbers[followed], followed, GOOD)
    reference = read(right)
    assert reference.process == followed and len(reference.steps) == 4
    early = Early(standard(reference), same_values=True)
    wrong = events(9.0, 9.0, 9.0, 9.0)
    others = [e for name, n in numbers.items() if name != followed for e in of_process(n, name, wrong)]
    assert told(early, [*others, *right]) is None
    early = Early(standard(reference), same_values=True)
    assert told(early, [*others, *of_process(numbers[followed], followed, wrong)]) is not None
    hostile = [{}, {"event": "step"}, {"event": "step", "n": [], "optimizer": {}}, {"event": 3}, {"event": "hello"}]
    early = Early(standard(reference), same_values=True)
    assert told(early, [{"event": None}, *hostile, {"event": "step", "process": []}]) is None


def test_without_a_reference_only_values_are_compared():
    assert told(Early(standard(None), same_values=True), events(9.0, 9.0)) is None


PROGRAM = """\
import torch

cell = torch.nn.RNNCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
h = torch.zeros(1, 3)
for step in range(100_000):
    new = cell(torch.ones(1, 2), h)
    opt.zero_grad()
    new.sum().backward()
    opt.step()
    h = new
"""


@pytest.fixture
def laboratory(one_server, tmp_path):
    """Over a program; with the book that edits it."""

    def make(text):
        folder = tmp_path / "project"
        folder.mkdir()
        folder.joinpath("train.py").write_text(text)
        settings = Settings(cwd=folder, script=folder / "train.py")
        project = Project.discover(settings.script, None, folder)
        session = one_server(Path("python"), project)
        return Laboratory(session, project, settings, lambda text: None), SourceBook(project.root)

    return make


def test_a_run_ends_where_enough_is_known(laboratory):
    lab, _ = laboratory(PROGRAM.replace("h = new", "pass"))
    seen = lab.observe(until=lambda event: event.get("event") == "step" and event["n"] >= 20).wait().recording
    assert 20 <= len(seen.steps) < 50_000 and not seen.death


def edited(text, old, new):
    at = text.index(old)
    return Candidate(old, "", (Edit("train.py", at, at + len(old), new),), 1, 1)


@pytest.fixture
def judged(laboratory):
    """The trials of a wrong patch, a slow wrong one and the right one; ``ahead``: all are started first."""

    def call(hurry, ahead):
        lab, book = laboratory(PROGRAM)
        observed = lab.observe().wait().recording
        right = PROGRAM.replace("= new", "= new.detach()").encode()
        reference: Recording = lab.observe(Horizon(most=40, live_from=1), {"train.py": right}).wait().recording
        wanted = Standard(observed, reference, reference.progress)
        judge = Judge(lab, book, hurry=hurry)
        candidates = [
            edited(PROGRAM, "lr=0.1", "lr=0.2"),
            edited(PROGRAM, "cell(torch.ones(1, 2), h)", "cell(torch.ones(1, 2), h.detach()) + (step > 20)"),
            edited(PROGRAM, "= new\n", "= new.detach()\n"),
        ]
        for candidate in candidates if ahead else ():
            judge.start(candidate, wanted)
        return [judge.try_one(candidate, wanted) for candidate in candidates], judge

    return call


@pytest.mark.parametrize("hurry", [False, True])
@pytest.mark.parametrize("ahead", [False, True])
def test_the_same_is_found(judged, hurry, ahead):
    trials, judge = judged(hurry, ahead)
    assert [t.level for t in trials] == [None, None, Level.SAFE]
    # the first fails again in its second step; who does not wait for that, sees that its first one differs
    assert [t.verdicts[-1].criterion for t in trials[:2]] == ["same training" if hurry else "runs", "same training"]
    assert judge.run_of(trials[2].diff).progress == 40
