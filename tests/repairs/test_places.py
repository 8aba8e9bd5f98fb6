"""Which parts of a value an edit has to cut, and where a value is bound to something that lasts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from autodetach.diagnosis.reader import read
from autodetach.repairs.places import binds, structure_at
from autodetach.source.module import SourceModule

T, X = "tensor", "other"


def marked(structure, *paths):
    return structure_at(SimpleNamespace(structure=structure, places=dict.fromkeys(paths, 0)))


def test_only_what_must_be_cut_is_marked():
    assert marked(T, ()) == T
    assert marked(X) == X
    assert marked(["tuple", [T, T]], (1,)) == ["tuple", [X, T]]
    assert marked(["dict", {"h": T, "c": T}], ("c",)) == ["dict", {"h": X, "c": T}]
    assert marked(["namedtuple", "State", [["h", T], ["n", X]]], (0,)) == ["namedtuple", "State", [["h", T], ["n", X]]]
    assert marked(["tuple", [T, ["list", [T, T]]]], (1, 0)) == ["tuple", [X, ["list", [T, X]]]]


def test_a_long_list_is_cut_as_a_whole():
    """Some of its tensors may have passed only later."""
    assert marked(["list", [T] * 5], (0,), (3,)) == ["list", [T] * 5]
    assert marked(["list", [T] * 3], (0,)) == ["list", [T, X, X]]


BINDING = {
    "h = «f(x)»": True,
    "self.h = «x»": True,
    "def f():\n    return «x»": True,
    "def f():\n    yield «x»": True,
    "memory.append(«x»)": True,
    "a, b = «x», 1": True,
    "state = {'h': «x»}": True,
    "y = «x» + 1": False,
    "print(«x».shape)": False,
    "«x».sum().backward()": False,
}


@pytest.mark.parametrize("text", BINDING)
def test_where_a_value_is_bound_to_something_that_lasts(text):
    start, end = text.index("«"), text.index("»") - 1
    module = SourceModule.parse("t.py", text.replace("«", "").replace("»", "").encode())
    assert binds(module.expression(module.source.span(start, end))) is BINDING[text]


ODD = [None, 5, [], ["list"], ["tuple", 5], ["dict", [1]], ["namedtuple", "S", [[1]]], ["set", []], {"a": 1}]


@pytest.mark.parametrize("structure", ODD, ids=str)
def test_a_structure_that_no_recorder_tells_is_dropped(structure):
    event = {
        "event": "place",
        "id": 1,
        "point": ["t.py", 1, 0, 1, 1],
        "path": [],
        "structure": structure,
        "watched": [],
    }
    for place in read([event]).places.values():
        marked(place.structure, ())
