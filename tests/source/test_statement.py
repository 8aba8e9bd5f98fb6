import pytest

SOURCE = """\
@decorate(x)
# why
@other
def train(model, *data):
    "Train."
    for step, (x, y) in data:
        with torch.no_grad(), autocast("cuda") as cast:
            out, (self.h, self.c) = model(x); loss = out  # short
            if step: y[0] = 1
            elif x:
                while True:
                    def inner(): return y
    else:
        pass
"""


def one(stmts, fragment):
    place = SOURCE.index(fragment)
    return stmts(SOURCE[:place] + "«" + SOURCE[place:])[0]


def test_surroundings(stmts):
    statement = one(stmts, "out, (")
    assert statement.kind == "Assign"
    assert statement.code == "out, (self.h, self.c) = model(x)"
    assert statement.is_simple and statement.shares_line and not statement.in_one_line_suite
    assert [loop.span.line for loop in statement.loops] == [6]
    assert [block.items for block in statement.withs] == [("torch.no_grad()", 'autocast("cuda")')]
    assert statement.function is not None and statement.function.span.line == 4
    assert [block.kind for block in statement.blocks] == ["With", "For", "FunctionDef"]
    assert [s.kind for s in statement.suite] == ["Assign", "Assign", "If"]
    assert statement.index == 0


def test_targets(stmts):
    assert one(stmts, "out, (").targets == ("out", "self.h", "self.c")
    assert one(stmts, "out, (").target_structure == (("out", ("self.h", "self.c")),)
    assert one(stmts, "for").targets == ("step", "x", "y")
    assert one(stmts, "with").targets == ("cast",)
    assert stmts("«a = b, *c = x\n")[0].target_structure == ("a", ("b", "*c"))


def test_elif_and_else_belong_to_their_statement(stmts):
    assert one(stmts, "elif").code.startswith("if step:")
    assert [len(suite) for suite in one(stmts, "if step").suites] == [1, 1]
    assert str(one(stmts, "while").block) == "Statement(If, train.py:9)"
    assert one(stmts, "else:\n        pass").kind == "For"
    assert str(one(stmts, "pass").block) == "Statement(For, train.py:6)"


def test_loops_end_at_the_function(stmts):
    inner = one(stmts, "return y")
    assert inner.loops == () and inner.withs == ()
    assert inner.function is not None and inner.function.code == "def inner(): return y"
    assert [loop.kind for loop in inner.function.loops] == ["While", "For"]


def test_decorators(stmts):
    function = one(stmts, "def train")
    assert [d.code for d in function.decorators] == ["decorate(x)", "other"]
    assert function.span.line == 4
    assert str(one(stmts, "@other")) == str(function)
    assert function.tree.source.position(function.lines_start) == (1, 0)


def test_nothing_between_statements(stmts):
    assert stmts("x = 1\n«\ny = 2\n") == []
    assert stmts("x = 1  «# comment\n") == []


@pytest.mark.parametrize(
    ("code", "read", "written"),
    [
        ("x = f(y.z)", {"f", "y.z"}, {"x"}),
        ("self.h, c[i] = x", {"c", "i", "x"}, {"self.h", "c"}),
        ("total += loss.item()", {"total", "loss.item"}, {"total"}),
        ("f(x)[0].data = (y := 1)", {"f", "x"}, {"f", "y"}),
        ("import a.b, c as d", set(), {"a", "d"}),
        ("from a import b", set(), {"b"}),
        ("def f(a=b): return c", {"b", "c"}, {"f"}),
        ("for x in y:\n    z = x", {"y", "x"}, {"x", "z"}),
        ("with a as b: pass", {"a"}, {"b"}),
        ("try: pass\nexcept E as e: pass", {"E"}, {"e"}),
        ("del a.b", set(), {"a.b"}),
        ("f(k=v, *w)", {"f", "v", "w"}, set()),
    ],
)
def test_names(stmts, code, read, written):
    statement = stmts(f"«{code}\n")[0]
    assert statement.names_read == read
    assert statement.names_written == written


@pytest.mark.parametrize(
    ("first", "second", "independent"),
    [
        ("x = 1", "y = 2", True),
        ("x = 1", "y = x", False),
        ("y = x", "x = 1", False),
        ("x = 1", "x = 2", False),
        ("self.h = 1", "y = self.h.sum()", False),
        ("self.h = 1", "self.c = self.d", True),
        ("self.h = 1", "f(self)", False),
        ("x = a", "y = a", True),
    ],
)
def test_independence(stmts, first, second, independent):
    one, other = stmts(f"«{first}\n«{second}\n")
    assert one.independent_of(other) is other.independent_of(one) is independent
