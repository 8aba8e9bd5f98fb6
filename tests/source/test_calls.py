import pytest

from autodetach.source import edits


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("x = «f(1, requires_grad=True)»", "x = f(1)"),
        ("x = «f(1, requires_grad=True, device=d)»", "x = f(1, device=d)"),
        ("x = «f(requires_grad=True, device=d)»", "x = f(device=d)"),
        ("x = «f(requires_grad=True)»", "x = f()"),
        ("x = «f( requires_grad = (True), )»", "x = f(  )"),
        ("x = «f(1, requires_grad=True,)»", "x = f(1,)"),
        ("x = «f(1, requires_grad=True, **kw)»", "x = f(1, **kw)"),
        ("x = «f(\n    1,  # a\n    requires_grad=True,  # b\n)»", "x = f(\n    1,  # a\n)"),
        ("x = «f(\n    1,  # a\n    requires_grad=True\n)»", "x = f(\n    1,  # a\n)"),
        ("x = «f(\n    1,\n    requires_grad=True\n)»", "x = f(\n    1\n)"),
        ("x = «f(\r\n\trequires_grad=True,  # b\r\n\tdevice=d\r\n)»", "x = f(\r\n\tdevice=d\r\n)"),
        ("x = «f(1,\n      requires_grad=True)»", "x = f(1)"),
        ("x = «f(1)»", None),
        ("x = «f»", None),
    ],
)
def test_drop_keyword(expr, after, marked, expected):
    call = expr(marked)
    assert after(call, edits.drop_keyword(call, "requires_grad")) == expected


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("x = «g(y, x)»", "x = g(y, x, create_graph=True)"),
        ("x = «g()»", "x = g(create_graph=True)"),
        ("x = «g(y, create_graph=False, k=1)»", "x = g(y, create_graph=True, k=1)"),
        ("x = «g(y, create_graph=(not p))»", "x = g(y, create_graph=True)"),
        ("x = «g(y,)»", "x = g(y, create_graph=True,)"),
        ("x = «g(y, **kw)»", "x = g(y, **kw, create_graph=True)"),
        ("x = «g(*y)»", "x = g(*y, create_graph=True)"),
        ("x = «g(\n    y,\n    x,  # é\n)»", "x = g(\n    y,\n    x,  # é\n    create_graph=True,\n)"),
        ("x = «g(\n    y,\n    x  # é\n)»", "x = g(\n    y,\n    x,  # é\n    create_graph=True\n)"),
        ("x = «g(\r\n\ty, x\r\n)»", "x = g(\r\n\ty, x, create_graph=True\r\n)"),
        ("x = «g(y,\n      x)»", "x = g(y,\n      x, create_graph=True)"),
        ("x = «g(y for y in z)»", None),
        ("x = «g»", None),
    ],
)
def test_set_keyword(expr, after, marked, expected):
    call = expr(marked)
    assert after(call, edits.set_keyword(call, "create_graph", "True")) == expected


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("y = «x.requires_grad_()»  # c", "y = x  # c"),
        ("y = f(«(a + b).requires_grad_()», 1)", "y = f((a + b), 1)"),
        ("y = (\n    «x\n    .requires_grad_(\n    )»\n)", "y = (\n    x\n)"),
        ("y = («x  # c\n    .requires_grad_()»)", None),
        ("if p:\n    «x.requires_grad_()»\n", "if p:\n    pass\n"),
        ("a; «x.requires_grad_()»; b\n", "a; b\n"),
        ("«f(x).requires_grad_()»\n", "f(x)\n"),
        ("«f(x)»\n", None),
    ],
)
def test_drop_method_call(expr, after, marked, expected):
    call = expr(marked)
    assert after(call, edits.drop_method_call(call)) == expected


@pytest.mark.parametrize(
    ("marked", "code", "expected"),
    [
        ("t += «loss»", "loss.item()", "t += loss.item()"),
        ("x = «a» * 2", "b + c", "x = (b + c) * 2"),
        ("x = («a») * 2", "b + c", "x = (b + c) * 2"),
        ("f(«a»)", "b + c", "f(b + c)"),
        ("f(«a»)", "b if c else d", "f((b if c else d))"),
        ("f(«a»)", "b, c", "f((b, c))"),
        ("f«(a for a in b)»", "c", "f(c)"),
        ("x = «a»", "b +", None),
        ("«a» = b", "c", None),
    ],
)
def test_replace_expression(expr, after, marked, code, expected):
    found = expr(marked)
    assert after(found, edits.replace_expression(found, code)) == expected


def test_drop_decorator(stmts, after):
    (function,) = stmts("@a\n# about b\n@b(\n  1)  # c\n«def f(): pass\n")
    first, second = function.decorators
    assert after(function, edits.drop_decorator(function, first)) == "# about b\n@b(\n  1)  # c\ndef f(): pass\n"
    assert after(function, edits.drop_decorator(function, second)) == "@a\n# about b\ndef f(): pass\n"
    (other,) = stmts("\n«def f(): pass\n")
    assert edits.drop_decorator(other, first) is None
