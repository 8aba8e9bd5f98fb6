import pytest
from hypothesis import given
from hypothesis import strategies as st

from autodetach.errors import SourceError
from autodetach.model import Edit
from autodetach.source.apply import apply, apply_all, only_intended
from autodetach.source.edits import size
from autodetach.source.module import SourceModule


def module(text, name="a.py"):
    return SourceModule.parse(name, text.encode())


def edit(start, end, text, name="a.py"):
    return Edit(name, start, end, text)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3), st.text("xy", max_size=3)), max_size=6))
def test_edits_are_made_where_they_say(raw):
    text = "abcdefghijklmnopqrstuvwxyz"
    made, place = [], 0
    expected = ""
    for gap, length, new in raw:
        start = place + gap
        if start + length > len(text):
            break
        made.append(edit(start, start + length, new))
        expected += text[place:start] + new
        place = start + length
    assert apply(module(text), made) == expected + text[place:]


def test_edits_at_one_place_keep_their_order():
    made = [edit(2, 3, "C"), edit(2, 2, "1"), edit(2, 2, "2"), edit(0, 2, "")]
    assert apply(module("abcd"), made) == "12Cd"


@pytest.mark.parametrize("made", [[(0, 2), (1, 3)], [(1, 1), (0, 2)], [(0, 9)], [(3, 2)], [(-1, 0)], [(0, 2), (0, 2)]])
def test_edits_that_overlap_are_refused(made):
    with pytest.raises(SourceError, match=r"a\.py: edits overlap"):
        apply(module("abcd"), [edit(start, end, "x") for start, end in made])


def test_files_are_edited_by_name():
    modules = {
        "a.py": module("x = 1\n"),
        "b.py": module("\ufeffy = 1\n", "b.py"),
        "c.py": module("z\n", "c.py"),
    }
    made = [edit(0, 1, "é"), edit(0, 1, "w", "b.py")]
    assert apply_all(modules, made) == {"a.py": "é = 1\n".encode(), "b.py": b"\xef\xbb\xbfw = 1\n"}
    with pytest.raises(SourceError, match=r"d\.py: not read"):
        apply_all(modules, [edit(0, 0, "", "d.py")])


SOURCE = "if p:\n    a = f(x + y)\n    b = 1\nc = 2\n"


@pytest.mark.parametrize(
    ("start", "end", "text", "reason"),
    [
        ("x", "x", "g(", "the edited source does not parse"),
        ("    b", "    b", "", None),
        ("    b", "    b", "if q:\n", "line 3: Assign is not edited, but in another block"),
        ("a", "a", '"""', "the edited source does not parse"),
        ("x", " + y", "z", None),
        ("a", "a", "pass  # ", "line 2: "),
        ("f(", "f(", "0, ", None),
        ("c", "c", "return ", "the edited source does not parse"),
    ],
)
def test_only_intended(start, end, text, reason):
    before = module(SOURCE)
    made = [edit(SOURCE.index(start), SOURCE.index(end), text)]
    found = only_intended(before, apply(before, made), made)
    assert found is None if reason is None else found is not None and found.startswith(reason)


def test_a_text_that_the_edits_do_not_make_is_not_intended():
    before = module(SOURCE)
    assert only_intended(before, SOURCE.replace("c = 2", "c = 3"), []) == "the text differs outside the edits"


def test_an_edit_that_swallows_what_follows_is_not_intended():
    before = module("a = ''\nb = ''\nc = 1\n")
    made = [edit(5, 5, "''")]
    text = apply(before, made)
    assert text == "a = ''''\nb = ''\nc = 1\n"
    assert only_intended(before, text, made) is not None


@pytest.mark.parametrize(
    ("made", "lines", "tokens"),
    [
        ([], 0, 0),
        ([("y)", "y)", "y.detach()")], 1, 5),
        ([("c", "c", "n = 1\n")], 1, 3),
        ([("    b", "c", "")], 1, 3),
        ([("    b", "c", ""), ("if", "if", "b = 1\n")], 1, 3),
        ([("b = 1", "\nc", "b = 2")], 1, 1),
    ],
)
def test_size(made, lines, tokens):
    before = module(SOURCE)
    made = [edit(SOURCE.index(start), SOURCE.index(end), text) for start, end, text in made]
    assert size(before, made) == (lines, tokens)
