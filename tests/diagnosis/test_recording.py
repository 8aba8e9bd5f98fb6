"""What a run says is read into records; what is broken or hostile is dropped, and the rest still counts."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from autodetach.diagnosis.reader import read
from autodetach.diagnosis.recording import Recording
from autodetach.model import FailureKind

WRONG = (None, "text", 5, -1, [], [[]], {}, [None], ["x", "y"], {"a": []}, [[1, 2]], True, "é" * 300)


def ask_everything(said: Recording) -> None:
    """All that others ask of a recording."""
    _ = said.relevant, said.direct, said.dominators, said.chain("aa"), said.chain(None)
    for pair in said.pairs:
        _ = pair.identity, pair.key, pair.updated_between
        if pair.birth is not None:
            _ = pair.reading


def one_of_each(events):
    return {event["event"]: event for event in reversed(events)}


def test_a_stale_state_is_read(real_events):
    said = read(real_events["reference"])
    assert said.failure is None and said.how == "stopped" and said.progress == 3
    assert [s.n for s in said.steps] == [1, 2, 3] and said.has_optimizer
    assert said.relevant and {p.id for p in said.pairs} >= said.relevant >= said.direct
    assert set(said.dominators) <= {p.id for p in said.pairs}
    assert {n for places in said.dominators.values() for n in places} <= set(said.places)
    assert len(said.live) >= 2


def test_a_failure_is_read(real_events):
    said = read(real_events["observe"])
    assert said.failure.kind is FailureKind.SECOND_BACKWARD
    assert said.failure.chain[0].span.place == "train.py:14" and said.failure_call == "backward"
    [root] = said.failure_roots
    assert {d.state for d in root.dead} == {"freed"} and root.leaves[0].optimizer == (0, 0)
    assert said.how == "error" and "second time" in said.traceback


def test_a_lost_graph_is_read(real_events):
    said = read(real_events["shadow"])
    assert said.failure.kind is FailureKind.NO_GRAD_FN
    assert "grad-off" in {s.reason for s in said.shades if s.on_path}


def broken_versions(event: dict[str, Any]):
    """The event with each of its fields missing, of another type, or nested wrongly."""
    for name in event:
        if name not in ("event", "process"):
            yield {k: v for k, v in event.items() if k != name}
            yield from ({**event, name: value} for value in WRONG)


def test_what_the_other_errors_tell_is_read(sibling_events):
    mended = read(sibling_events["mended"])
    assert {m.kind for m in mended.mended} == {FailureKind.NUMPY_ON_GRAD, FailureKind.LEAF_IN_PLACE}
    assert all(m.leaf is not None and m.leaf.holders == ((0, 0),) for m in mended.mended if m.leaf)
    assert read(sibling_events["frozen"]).frozen.rows and read(sibling_events["frozen"]).frozen.leaves == 2
    first, second = read(sibling_events["traced"]).inputs
    assert (first.marked, first.used, second.marked) == (False, False, True) and first.read and second.twin.same
    assert {leak.count[1] > 3 for leak in read(sibling_events["leaking"]).leaks} == {True}


@pytest.mark.parametrize("name", ["mended", "frozen", "traced", "leaking"])
def test_a_broken_event_of_theirs_takes_no_other_with_it(sibling_events, name):
    events = sibling_events[name]
    for kind, event in one_of_each(events).items():
        if kind in ("site", "hello", "end", "stop"):
            continue
        for broken in broken_versions(event):
            said = read([*(e for e in events if e["event"] != kind), broken])
            ask_everything(said)
            assert not said.frozen or all(row[0] < len(said.frozen.made) for row in said.frozen.rows)


@pytest.mark.parametrize("mode", ["observe", "reference", "shadow"])
def test_a_broken_event_takes_no_other_with_it(real_events, mode):
    events = real_events[mode]
    whole = read(events)
    for kind, event in one_of_each(events).items():
        for bad in broken_versions(event):
            said = read([bad if e is event else e for e in events])
            ask_everything(said)
            if kind not in ("failure", "site", "note"):
                assert said.failure == whole.failure
            if kind not in ("step", "end"):
                assert said.steps == whole.steps


KINDS = ("unknown", "__init__", "_class__", "reader", "take")
STRANGE = [{}, *({"event": kind} for kind in KINDS), {"event": "live", "process": "x", "n": 1, "nodes": 2}]
WILD = [{"event": 5}, {"event": None}, {"event": ["site"]}, {"event": "live", "n": float("inf"), "nodes": 1},
        {"event": "live", "process": float("inf"), "n": 1, "nodes": 1}]  # fmt: skip


@pytest.mark.parametrize("event", STRANGE, ids=str)
def test_strange_events_are_dropped(real_events, event):
    events = real_events["observe"]
    assert read([event, *events, event]) == read(events)


@pytest.mark.parametrize("event", WILD, ids=str)
def test_wilder_events_are_dropped(real_events, event):
    events = real_events["observe"]
    assert read([event, *events]) == read(events)


def something(rng: random.Random, depth: int = 3) -> Any:
    """A JSON value."""
    if depth and rng.random() < 0.5:
        inner = [something(rng, depth - 1) for _ in range(rng.randrange(4))]
        return inner if rng.random() < 0.6 else {rng.choice(("1", "aa", "x")): value for value in inner}
    return rng.choice((None, True, -3, 0, 7, 0.5, float("nan"), float("inf"), 10**400, "aa", "é", "tensor", ""))


@pytest.mark.parametrize("seed", range(4))
def test_whatever_a_hostile_run_says_reading_it_raises_nothing(real_events, seed):
    rng = random.Random(seed)
    good = [e for events in real_events.values() for e in one_of_each(events).values()]
    for _ in range(100):
        events = [{k: something(rng) if k != "event" and rng.random() < 0.1 else v for k, v in e.items()} for e in good]
        ask_everything(read(json.loads(json.dumps(events))))


def test_nothing_at_all():
    said = read([])
    assert said.failure is None and said.how == "" and said.progress == 0
    ask_everything(said)


def of(process, events):
    return [{**event, "process": process} for event in events]


def test_the_process_that_failed_is_the_one_that_counts(real_events):
    failing, training = real_events["observe"], real_events["reference"]
    said = read([*of(0, training), *of(41, failing), *of(42, training)])
    assert said.failure is not None and said.how == "error" and len(said.steps) == 1


def test_else_the_process_that_trained_most(real_events):
    training = real_events["reference"]
    first = next(i for i, e in enumerate(training) if e["event"] == "step")
    assert len(read([*of(0, training[: first + 1]), *of(41, training)]).steps) == 3


def test_a_failure_that_the_program_dealt_with_is_none(real_events):
    events = real_events["observe"]
    dealt = {"event": "note", "text": "the program caught the error itself and trained on", "process": 0}
    failure = one_of_each(events)["failure"]
    assert read([*events, dealt]).failure is None
    assert read([*events, dealt, failure]).failure is not None


def test_a_failure_of_an_unknown_kind_or_place(real_events):
    failure = one_of_each(real_events["observe"])["failure"]
    assert read([{**failure, "kind": "martian"}]).failure is None
    assert read([failure]).failure.chain == ()


# -- what becomes code ------------------------------------------------------------------------------------------------

SPAN = ["t.py", 1, 0, 1, 1]
HOLDER = {"event": "holder", "id": 1, "frame": ["t.py", 1, 0, 1, 1], "function": "f", "path": "net.rnn.h",
          "scope": "local", "structure": "tensor", "methods": [["net", "detach_state"]],
          "resets": ["reset"], "parameter": False, "container": ""}  # fmt: skip
PATHS = ["h", "self.h", "self.layers[0].h", "state['h']", "h[0][1]"]
INJECTED = [
    "",
    "h; import os",
    "h)\nimport os",
    "os.system('x')",
    "a[os.x()]",
    "h # x",
    "(h)[f()]",
    "lambda: 0",
    "a[b]",
    "h\n",
    5,
]


@pytest.mark.parametrize("path", PATHS)
def test_names_of_the_program_are_taken_over(path):
    assert read([{**HOLDER, "path": path}]).holders[1].path == path
    assert read([{**HOLDER, "methods": [[path, "detach_"]]}]).holders[1].methods == ((path, "detach_"),)


@pytest.mark.parametrize("path", INJECTED, ids=str)
def test_no_more_do_the_names_of_what_is_to_be_marked_or_detached(sibling_events, path):
    for event, field in (("mended", "names"), ("failure", "inputs")):
        for each in (e for events in sibling_events.values() for e in events if e["event"] == event and e.get(field)):
            named = [[path, "tensor"]] if event == "mended" else [{**each[field][0], "frames": [[SPAN, "f", [path]]]}]
            said = read([{**each, field: named}])
            assert not any(m.names for m in said.mended)
            assert not any(names for i in said.inputs for _, _, names in i.frames)
    said = read([{"event": "marked", "site": "a", "place": 0, "frames": [[SPAN, "f", [path, "x"]]]}])
    assert [names for m in said.marked for _, _, names in m.frames] == [("x",)]


@pytest.mark.parametrize("path", INJECTED, ids=str)
def test_what_is_no_name_gets_into_no_patch(path):
    assert not read([{**HOLDER, "path": path}]).holders
    assert not read([{**HOLDER, "methods": [[path, "detach_"]]}]).holders
    assert not read([{**HOLDER, "methods": [["h", path]]}]).holders
    assert not read([{**HOLDER, "resets": [path]}]).holders
    assert not read([{**HOLDER, "structure": ["namedtuple", path, []]}]).holders
    assert not read([{**HOLDER, "structure": ["namedtuple", "State", [[path, "tensor"]]]}]).holders


def test_numbers_that_no_float_holds_are_dropped():
    step = {"event": "step", "n": 1, "optimizer": 0, "params": [[1, 2]], "grads": [1], "backwards": 1}
    assert read([step]).steps[0].params == ((1.0, 2.0),)
    for bad in (
        {"params": [[10**400, 1]]},
        {"params": [[[], 1]]},
        {"params": [[1]]},
        {"grads": [10**400]},
        {"grads": [{}]},
    ):
        assert not read([{**step, **bad}]).steps
