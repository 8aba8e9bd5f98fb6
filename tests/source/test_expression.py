import pytest

from autodetach.source.expression import Role


@pytest.mark.parametrize(
    ("marked", "role", "targets"),
    [
        ("h = «net(x)»", Role.STORE, ("h",)),
        ("a = self.h = «net(x)»", Role.STORE, ("a", "self.h")),
        ("h: Tensor = («net(x)»)", Role.STORE, ("h",)),
        ("total += «loss»", Role.STORE, ("total",)),
        ("while (h := «net(x)»): pass", Role.STORE, ("h",)),
        ("out, (h, c) = «net(x)»", Role.STORE, ("out, (h, c)",)),
        ("a, b = «x», y", Role.ITEM, ("a",)),
        ("a, (b, self.c) = x, (y, «z»)", Role.ITEM, ("self.c",)),
        ("a, *b = «x», y", Role.ITEM, ()),
        ("x = [«y»]", Role.ITEM, ()),
        ("x = {'h': «y»}", Role.ITEM, ()),
        ("x = {«y»: 1}", Role.OTHER, ()),
        ("f(«x»)", Role.ARGUMENT, ()),
        ("f(*«x», k=1)", Role.ARGUMENT, ()),
        ("f(k=«x»)", Role.ARGUMENT, ()),
        ("class A(«B»): pass", Role.OTHER, ()),
        ("«x».sum()", Role.RECEIVER, ()),
        ("«f»(x)", Role.OTHER, ()),
        ("def f(): return «x»", Role.RETURN, ()),
        ("def f(): yield «x»", Role.YIELD, ()),
        ("def f(): yield from «x»", Role.YIELD, ()),
        ("for x in «y»: pass", Role.ITERATED, ()),
        ("for «x» in y: pass", Role.OTHER, ()),
        ("[x for x in «y»]", Role.ITERATED, ()),
        ("«x»[0]", Role.SUBSCRIPTED, ()),
        ("x[«i»]", Role.OTHER, ()),
        ("«x» + y", Role.OPERAND, ()),
        ("-«x»", Role.OPERAND, ()),
        ("x < «y»", Role.OPERAND, ()),
        ("x and «y»", Role.OPERAND, ()),
        ("x if «y» else z", Role.OTHER, ()),
    ],
)
def test_role_and_targets(expr, marked, role, targets):
    found = expr(marked)
    assert (found.role, found.targets) == (role, targets)


@pytest.mark.parametrize(
    ("code", "name_like"),
    [
        ("h", True),
        ("self.h", True),
        ("self.h[0]", True),
        ("state['h'][-1]", True),
        ("state[i].h", True),
        ("state[i + 1]", False),
        ("state[1:2]", False),
        ("state[i, j]", False),
        ("f().h", False),
        ("f(x)", False),
    ],
)
def test_name_like(expr, code, name_like):
    assert expr(f"x = «{code}»").is_name_like is name_like


@pytest.mark.parametrize(
    ("marked", "needs"),
    [
        ("x = «a + b»", True),
        ("x = («a + b»)", False),
        ("x = «a.b[c](d)»", False),
        ("x = «-a»", True),
        ("x = «(a, b)»", False),
        ("x = «a, b»", True),
        ("x = f«(a for a in b)»", False),
        ("x = «a if b else c»", True),
        ("x = «1»", True),
        ("async def f(): x = «await a»", True),
    ],
)
def test_parentheses_for_an_attribute(expr, marked, needs):
    assert expr(marked).parenthesise_for_attribute is needs


def test_own_parentheses_are_outside(expr):
    found = expr("x = ( «a + b» )")
    assert (found.code, found.outer_code) == ("a + b", "( a + b )")


def test_parent_and_children(expr):
    found = expr("x = f(a.b, k=«c + d[e]», *g)")
    assert found.parent is not None and found.parent.code == "f(a.b, k=c + d[e], *g)"
    assert [child.code for child in found.parent.children] == ["f", "a.b", "c + d[e]", "g"]
    assert [child.code for child in found.children] == ["c", "d[e]"]
    assert found.parent.parent is None
    assert found.statement.code == "x = f(a.b, k=c + d[e], *g)"
