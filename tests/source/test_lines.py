import pytest

from autodetach.source import edits

LINE = "n = 1"


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("a\n«b\n", "a\nn = 1\nb\n"),
        ("a\n# about b\n«b\n", "a\nn = 1\n# about b\nb\n"),
        ("#!/bin/python\n# coding: utf-8\n«b\n", "#!/bin/python\n# coding: utf-8\nn = 1\nb\n"),
        ("if p:\r\n\t«b\r\n", "if p:\r\n\tn = 1\r\n\tb\r\n"),
        ("if p: «b; c", "if p: n = 1; b; c"),
        ("a; «b", "a; n = 1; b"),
        ("if p:\n  @d\n  «def f(): pass\n", "if p:\n  n = 1\n  @d\n  def f(): pass\n"),
        ("if p: a\n«elif q: b\n", "n = 1\nif p: a\nelif q: b\n"),
        ("\f«b\n", "n = 1\n\fb\n"),
        ("x = '''\n# no comment'''\n«b\n", "x = '''\n# no comment'''\nn = 1\nb\n"),
        (
            "if p:\n    # about d\n    @d\n    «def f(): pass\n",
            "if p:\n    n = 1\n    # about d\n    @d\n    def f(): pass\n",
        ),
    ],
)
def test_insert_before(stmts, after, marked, expected):
    (statement,) = stmts(marked)
    assert after(statement, edits.insert_before(statement, LINE)) == expected


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("«a\nb\n", "a\nn = 1\nb\n"),
        ("«a  # c\n", "a  # c\nn = 1\n"),
        ("«a;\n", "a;\nn = 1\n"),
        ("«a", "a\nn = 1"),
        ("if p:\r\n\t«a", "if p:\r\n\ta\r\n\tn = 1"),
        ("«a; b  # c\n", "a; n = 1; b  # c\n"),
        ("a; «b;  # c\n", "a; b; n = 1;  # c\n"),
        ("if p: «a  # c\nelse: b\n", "if p: a; n = 1  # c\nelse: b\n"),
        (
            "«if p: a\nelif q:\n    b\n\n    # still b\n\n# c\nc\n",
            "if p: a\nelif q:\n    b\n\n    # still b\nn = 1\n\n# c\nc\n",
        ),
        ("«x = '''\n  a'''\n", "x = '''\n  a'''\nn = 1\n"),
        ("«x = (a,  # c\n     b)\n", "x = (a,  # c\n     b)\nn = 1\n"),
        ("«x = a + \\\n  b\n", "x = a + \\\n  b\nn = 1\n"),
    ],
)
def test_insert_after(stmts, after, marked, expected):
    (statement,) = stmts(marked)
    assert after(statement, edits.insert_after(statement, LINE)) == expected


def test_several_lines_are_indented_together(stmts, after):
    (statement,) = stmts("if p:\r\n\t«a\r\n")
    assert after(statement, edits.insert_after(statement, "if b:\n\tc")) == "if p:\r\n\ta\r\n\tif b:\r\n\t\tc\r\n"
    (statement,) = stmts("if p: «a\n")
    assert edits.insert_after(statement, "if b:\n\tc") is None
    assert edits.insert_before(statement, "if b:\n\tc") is None


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("«for x in y:  # c\n    # about a\n    a\n", "for x in y:  # c\n    n = 1\n    # about a\n    a\n"),
        ("«def f():\n  '''Doc.\n  '''\n  a\n", "def f():\n  '''Doc.\n  '''\n  n = 1\n  a\n"),
        ("«def f():\n  'Doc.'\n", "def f():\n  'Doc.'\n  n = 1\n"),
        ("«def f(): 'Doc.'\n", "def f(): 'Doc.'; n = 1\n"),
        ("«for x in y: a\n", "for x in y: n = 1; a\n"),
        ("«while x:\n    'no doc'\n", "while x:\n    n = 1\n    'no doc'\n"),
        ("«a\n", None),
    ],
)
def test_insert_at_start(stmts, after, marked, expected):
    (statement,) = stmts(marked)
    assert after(statement, edits.insert_at_start(statement, LINE)) == expected


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("a\n«b  # c\nd\n", "a\nd\n"),
        ("a\n# about b\n«b\n", "a\n# about b\n"),
        ("a\n«b", "a\n"),
        ("«a; b; c\n", "b; c\n"),
        ("a; «b; c\n", "a; c\n"),
        ("a; b; «c;  # d\n", "a; b;  # d\n"),
        ("if p:\n    «a  # c\nb\n", "if p:\n    pass  # c\nb\n"),
        ("if p: «a  # c\nelse: b\n", "if p: pass  # c\nelse: b\n"),
        ("if p: «a; b\n", "if p: b\n"),
        ("if p:\n\t@d\n\t«def f():\n\t\ta\n", "if p:\n\tpass\n"),
        ("«a\n", ""),
        ("if p:\n    a\nelse:\n    «x = (1,\n     2)\n", "if p:\n    a\nelse:\n    pass\n"),
        ("if p:\n    «for x in y:\n        a\n        # end\n    b\n", "if p:\n    b\n"),
    ],
)
def test_delete_statement(stmts, after, marked, expected):
    (statement,) = stmts(marked)
    assert after(statement, edits.delete_statement(statement)) == expected
