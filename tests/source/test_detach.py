import pytest

from autodetach.source import edits

T, N = "tensor", "other"
PAIR = ["tuple", [T, T]]


@pytest.mark.parametrize(
    ("marked", "structure", "expected"),
    [
        ("h = «net(x)»  # état", T, "h = net(x).detach()  # état"),
        ("é = «a + b»", T, "é = (a + b).detach()"),
        ("h = («a + b»)", T, "h = (a + b).detach()"),
        ("h = ( «h» )", T, "h = ( h.detach() )"),
        ("h = a + «b»", T, "h = a + b.detach()"),
        ("h = -«x» ** 2", T, "h = -x.detach() ** 2"),
        ("y = «x».sum()", T, "y = x.detach().sum()"),
        ("y = «x if p else z»", T, "y = (x if p else z).detach()"),
        ("while (h := «net(x)») is not None: pass", T, "while (h := net(x).detach()) is not None: pass"),
        ("match «h»:\n    case _: pass", T, "match h.detach():\n    case _: pass"),
        ("h = (\n    «net(x)\n    .mean()»  # m\n)", T, "h = (\n    net(x)\n    .mean().detach()  # m\n)"),
        ("h = «a \\\n    + b»", T, "h = (a \\\n    + b).detach()"),
        ("x = 1; h = «net(x)»; y = 2\n", T, "x = 1; h = net(x).detach(); y = 2\n"),
        ("if x: h = «net(x)»", T, "if x: h = net(x).detach()"),
        ("f(k=«x + 1», *y)", T, "f(k=(x + 1).detach(), *y)"),
        ("f(*«hs»)", PAIR, "f(*tuple(part.detach() for part in hs))"),
        ("h = «t.u»", ["tuple", [T, T]], "h = tuple(part.detach() for part in t.u)"),
        # displays and comprehensions: in place
        ("h = «(h, c)»", PAIR, "h = (h.detach(), c.detach())"),
        ("def f(): return «h, net(c)»", PAIR, "def f(): return h.detach(), net(c).detach()"),
        ("h = «(h, n)»", ["tuple", [T, N]], "h = (h.detach(), n)"),
        ("s = «[a + b, (h, c)]»", ["list", [T, PAIR]], "s = [(a + b).detach(), (h.detach(), c.detach())]"),
        ("s = «{'h': h, 'n': n}»", ["dict", {"h": T, "n": N}], "s = {'h': h.detach(), 'n': n}"),
        ("s = «[f(x) for x in y]»", ["list", [T, T]], "s = [f(x).detach() for x in y]"),
        ("s = «tuple(x for x in y)»", PAIR, "s = tuple(x.detach() for x in y)"),
        ("s = «{k: f(k) for k in y}»", ["dict", {"a": T}], "s = {k: f(k).detach() for k in y}"),
        # other containers
        ("h = «net(x)»", PAIR, "h = tuple(part.detach() for part in net(x))"),
        ("h = «a if p else b»", PAIR, "h = tuple(part.detach() for part in (a if p else b))"),
        ("h = «net(x)»", ["list", [T, T, T]], "h = [part.detach() for part in net(x)]"),
        (
            "h = «net(x)»",
            ["dict", {"a": T, "b": T}],
            "h = {key: value.detach() for key, value in net(x).items()}",
        ),
        ("h = «a or b»", ["dict", {"a": T}], "h = {key: value.detach() for key, value in (a or b).items()}"),
        ("h = «net(x)»", ["list", [PAIR, PAIR]], "h = [(h.detach(), c.detach()) for h, c in net(x)]"),
        (
            "h = «net(x)»",
            ["dict", {"a": PAIR}],
            "h = {key: (h.detach(), c.detach()) for key, (h, c) in net(x).items()}",
        ),
        (
            "h = «net(x)»",
            ["tuple", [["list", [T]], ["list", [T, T]]]],
            "h = tuple([part.detach() for part in group] for group in net(x))",
        ),
        (
            "h = «net(x)»",
            ["list", [["tuple", [T, N, T]]]],
            "h = [(first.detach(), second, third.detach()) for first, second, third in net(x)]",
        ),
        ("h = «s»", ["namedtuple", "S", [["h", T], ["c", T]]], "h = type(s)(*(part.detach() for part in s))"),
        ("h = «s.t»", ["namedtuple", "S", [["h", T], ["n", N]]], "h = s.t._replace(h=s.t.h.detach())"),
        (
            "h = «hs»",
            ["tuple", [T, N, PAIR]],
            "h = (hs[0].detach(), hs[1], tuple(part.detach() for part in hs[2]))",
        ),
        ("h = «s»", ["tuple", [T, N]], "h = (s[0].detach(), s[1])"),
        ("h = «s»", ["tuple", [N, T, N, N, N]], None),
        ("h = «s»", ["dict", {"h": T, "n": N}], 'h = {**s, "h": s["h"].detach()}'),
        ("h = «s»", ["dict", {"0": T, "n": N}], None),
        ("h = list(«(f(x) for x in y)», 1)", T, "h = list((f(x) for x in y).detach(), 1)"),
        (
            "h = list«(f(x) for x in y)»",
            ["list", [T]],
            "h = list([part.detach() for part in (f(x) for x in y)])",
        ),
        ("x = f'{«h»}'", T, "x = f'{h.detach()}'"),
        ("x = f'{«h»}'", ["tuple", [T, T]], "x = f'{tuple(part.detach() for part in h)}'"),
        # not to be done
        ("x = f'{«h»}'", ["dict", {"a": T}], None),
        ("h = f«(x for x in y)»", T, None),
        ("h = «net(x)»", ["tuple", [T, N]], None),
        ("h = «net(x)»", ["namedtuple", "S", [["h", T]]], None),
        ("h = «net(x)»", N, None),
        ("h = «net(x)»", ["tuple", []], None),
        ("h = «net(x)»", ["list", [N]], None),
        ("«h» = net(x)", T, None),
        ("for «h» in x: pass", T, None),
        ("a, «b.c» = x", T, None),
        ("h = «net(x)»", ["list", [["list", [["list", [["list", [T]]]]]]]], None),
    ],
)
def test_detach_expression(expr, after, marked, structure, expected):
    found = expr(marked)
    assert after(found, edits.detach_expression(found, structure)) == expected


@pytest.mark.parametrize(
    ("marked", "targets", "expected"),
    [
        ("«h = net(x)\n", [("h", T)], "h = net(x)\nh = h.detach()\n"),
        ("«h = net(x)", [("h", T)], "h = net(x)\nh = h.detach()"),
        (
            "if p:\r\n\t«h = net(x)  # hi\r\n",
            [("h", T)],
            "if p:\r\n\th = net(x)  # hi\r\n\th = h.detach()\r\n",
        ),
        ("a; «h = net(x);  # hi\n", [("h", T)], "a; h = net(x); h = h.detach();  # hi\n"),
        ("if p: «h = net(x)\nb\n", [("h", T)], "if p: h = net(x); h = h.detach()\nb\n"),
        (
            "if p:\n  «out, (self.h, self.c) = net(\n    x)\n  y\n",
            [("self.h", T), ("self.c", T)],
            "if p:\n  out, (self.h, self.c) = net(\n    x)\n  self.h, self.c = self.h.detach(), self.c.detach()\n  y\n",
        ),
        (
            "«s[-1] = net(x)\n",
            [("s[-1]", PAIR)],
            "s[-1] = net(x)\ns[-1] = tuple(part.detach() for part in s[-1])\n",
        ),
        ("«for h in hs:\n    f(h)\n", [("h", T)], "for h in hs:\n    h = h.detach()\n    f(h)\n"),
        ("«for h in hs: f(h)\n", [("h", T)], "for h in hs: h = h.detach(); f(h)\n"),
        (
            "«for x in y:\n    h = f(h)\n    # end\nz\n",
            [("h", T)],
            "for x in y:\n    h = f(h)\n    # end\nh = h.detach()\nz\n",
        ),
        ("def f():\n    «return h\n", [("h", T)], None),
        ("«s[f()] = net(x)\n", [("s[f()]", T)], None),
        ("«h = net(x)\n", [("h", N)], None),
    ],
)
def test_detach_targets_after(stmts, after, marked, targets, expected):
    (statement,) = stmts(marked)
    assert after(statement, edits.detach_targets_after(statement, targets)) == expected


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("«x.detach()\n", "x = x.detach()\n"),
        ("a; «self.h.detach()  # cut\n", "a; self.h = self.h.detach()  # cut\n"),
        ("if p: «s[0].detach()\n", "if p: s[0] = s[0].detach()\n"),
        ("«f(x).detach()\n", None),
        ("«self.detach()\n", None),
        ("«y = x.detach()\n", None),
        ("«f(x)\n", None),
    ],
)
def test_rebind(stmts, after, marked, expected):
    (statement,) = stmts(marked)
    assert after(statement, edits.rebind(statement)) == expected
