import pytest

from autodetach.source import edits


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        (
            "# make\n«enc = net(x)\nb = 1\nfor e in y:\n\t# loss\n\t«f(enc)\n",
            "b = 1\nfor e in y:\n\t# make\n\tenc = net(x)\n\t# loss\n\tf(enc)\n",
        ),
        ("«x = '''\n a'''\nif p:\n    «y\n", "if p:\n    x = '''\n a'''\n    y\n"),
        ("«x = (1,\n     2)\nif p:\n  «y", "if p:\n  x = (1,\n       2)\n  y"),
        ("«a; b  # c\nif p: «d\n", "b  # c\nif p: a; d\n"),
        ("«if q: a\nif p: «d\n", None),
        ("if p:\n    «a  # c\n«b\n", "if p:\n    pass\na  # c\nb\n"),
        ("if p:\n    # about a\n    «a\n«b\n", "if p:\n    pass\n# about a\na\nb\n"),
        ("if p: «a\n«b\n", "if p: pass\na\nb\n"),
        ("if p:\n    «b\n", None),
        ("«a; b\n«c\n", "b\na\nc\n"),
    ],
)
def test_move_before(stmts, after, marked, expected):
    found = stmts(marked)
    moved, place = found[0], found[-1]
    if len(found) == 1:
        moved, place = found[0].block, found[0]
    assert after(moved, edits.move_statements([moved], before=place)) == expected


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("«a\nfor x in y:\n    «b\n    c\nd\n", "for x in y:\n    b\n    a\n    c\nd\n"),
        ("«a\r\nif p:\r\n\t«b", "if p:\r\n\tb\r\n\ta"),
        ("for x in y:\n    a\n    «b\n«c", "for x in y:\n    a\nc\nb"),
        ("«@d\ndef f():\n\n    a\n«b\n", "b\n@d\ndef f():\n\n    a\n"),
        ("«for x in y:\n  a\n  # end\n«if p:\n  b\n", "if p:\n  b\nfor x in y:\n  a\n  # end\n"),
    ],
)
def test_move_after(stmts, after, marked, expected):
    moved, place = stmts(marked)
    assert after(moved, edits.move_statements([moved], after=place)) == expected


def test_move_several_to_the_start(stmts, after):
    first, second, loop = stmts("«a\nb\n# about c\n«c  # C\n«def f():\n  'doc'\n  d\n")
    moved = edits.move_statements([second, first], to_start_of=loop)
    assert after(loop, moved) == "b\ndef f():\n  'doc'\n  a\n  # about c\n  c  # C\n  d\n"


def test_all_of_a_suite_and_all_of_a_line(stmts, after):
    a, b, c, d = stmts("if p:\n    «a; «b  # ab\n    «c\n«d\n")
    assert after(a, edits.move_statements([a, b, c], before=d)) == "if p:\n    pass\na; b  # ab\nc\nd\n"
    assert edits.move_statements([a, d], before=c) is None
    assert edits.move_statements([], before=c) is None


WITH = """\
if p:
  # why
  «with no_grad():  # off
    # a
    «a
    b = '''
    s'''

    c
    # end
  d
"""


def test_move_some_out_of_a_with(stmts, after):
    block, a = stmts(WITH)
    assert after(block, edits.move_out_of_with(block, [a])) == (
        "if p:\n  # a\n  a\n  # why\n  with no_grad():  # off\n    b = '''\n    s'''\n\n    c\n    # end\n  d\n"
    )


def test_move_all_out_of_a_with(stmts, after):
    block, _ = stmts(WITH)
    assert after(block, edits.move_out_of_with(block, block.body)) == (
        "if p:\n  # why\n  # a\n  a\n  b = '''\n    s'''\n\n  c\n  # end\n  d\n"
    )


@pytest.mark.parametrize(
    ("marked", "item", "expected"),
    [
        ("«with no_grad(): a; b\n", 0, "a; b\n"),
        ("«with no_grad(), cast(x) as c:\n\ta\n", 0, "with cast(x) as c:\n\ta\n"),
        ("«with cast(x) as c, no_grad():\n\ta\n", 1, "with cast(x) as c:\n\ta\n"),
        ("«with (cast(x), (no_grad()),):\n\ta\n", 1, "with (cast(x),):\n\ta\n"),
        ("«with (\n  no_grad(),\n  cast(x),\n):\n\ta\n", 0, "with (\n  cast(x),\n):\n\ta\n"),
        ("«with (\n  no_grad()\n):  # c\n\ta\n\r\n\tb", 0, "a\n\r\nb"),
        ("async def f():\n    «async with g():\n        a\n", 0, "async def f():\n    a\n"),
        ("«with no_grad() as n:\n\ta\n", 0, None),
        ("«with no_grad():\n\ta\n", 1, None),
        ("«if p:\n\ta\n", 0, None),
    ],
)
def test_dissolve_a_with(stmts, after, marked, item, expected):
    (block,) = stmts(marked)
    assert after(block, edits.move_out_of_with(block, block.body, item=item)) == expected


def test_not_some_out_of_a_with_of_several_items(stmts):
    block, a = stmts("«with no_grad(), cast():\n    «a\n    b\n")
    assert edits.move_out_of_with(block, [a]) is None
    assert edits.move_out_of_with(block, [block]) is None


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("# c\n«a\nb\n", "# c\nwith torch.no_grad():\n    a\nb\n"),
        ("if p:\r\n\t«a; «b\r\n", "if p:\r\n\twith torch.no_grad():\r\n\t\ta; b\r\n"),
        ("«a\n\n# c\n«x = '''\n'''", "with torch.no_grad():\n    a\n\n    # c\n    x = '''\n'''"),
        ("if p:\n  «x = (1,\n1)\n", "if p:\n  with torch.no_grad():\n    x = (1,\n1)\n"),
        ("@d\n«def f():\n\ta\n", "with torch.no_grad():\n\t@d\n\tdef f():\n\t\ta\n"),
        ("«a; b\n", None),
        ("if p: «a\n", None),
        ("«a\nb\n«c\n", None),
    ],
)
def test_wrap_in_with(stmts, after, marked, expected):
    found = stmts(marked)
    assert after(found[0], edits.wrap_in_with(found, "torch.no_grad()")) == expected
