"""How a value travels: probes around the expressions of the user's own files.

In a replay the project's files are compiled with every expression that may hold a tensor wrapped in a call that
hands its value through. A *place* is an expression and a path into its value (empty for a bare tensor): wherever a
watched tensor (one that the reference run cuts somewhere), or one computed from a cut operand, passes, the place is
noted with it:

``place``   {id, point: [file, line, column, end line, end column], path, structure,
            watched: [[site, distance, output], ...]}
``others``  {point, path, count}: how often tensors passed whose graph must live; an edit would cut them too. What the
            maker of a watched tensor makes counts once it is read: the last state of a sequence never is.

``structure`` is the value's shape as nested JSON: "tensor", "other", ["tuple", [...]], ["list", [...]],
["dict", {...}], ["namedtuple", name, [[field, ...], ...]]. Positions are those of the source, so that sites are the
same with and without probes.
"""

import ast
import builtins
import importlib.machinery
import sys

import torch

NAME = "__autodetach_probe__"
WRAPPED = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Tuple, ast.List,
           ast.Dict, ast.ListComp, ast.DictComp, ast.Await, ast.NamedExpr, ast.BoolOp)  # fmt: skip


BINDS, HANDS_OVER, READS = "binds", "hands over", "reads"
PASSES_ON = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.IfExp, ast.BoolOp, ast.ListComp, ast.DictComp, ast.SetComp,
             ast.GeneratorExp, ast.Starred, ast.keyword)  # fmt: skip
BINDING = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.Return, ast.Yield, ast.YieldFrom, ast.Lambda,
           ast.For, ast.AsyncFor, ast.comprehension, ast.arguments)  # fmt: skip
LOOKING = frozenset(
    [
        "print",
        "float",
        "int",
        "len",
        "str",
        "repr",
        "isinstance",
        "type",
        "id",
        "bool",
        "format",
        "round",
        "hasattr",
        "abs",
        "range",
    ]
)


def use_of(node, parents):
    """What is done with an expression's value: it is bound to something that lasts, handed to a call, or read."""
    parent = parents.get(node)
    if isinstance(parent, ast.Attribute) and parent.attr == "detach":
        call = parents.get(parent)
        if isinstance(parents.get(call), ast.Expr):
            return BINDS  # ``h.detach()`` alone on its line: it would bind, were its result kept
    while isinstance(parent, PASSES_ON):
        node, parent = parent, parents.get(parent)
    if isinstance(parent, BINDING):
        return BINDS
    if isinstance(parent, ast.Call) and node is not parent.func:
        looking = isinstance(parent.func, ast.Name) and parent.func.id in LOOKING
        return READS if looking else HANDS_OVER
    return READS


class _Wrap(ast.NodeTransformer):
    """Wraps loads; names that are called, format strings, annotations and patterns are left alone."""

    def __init__(self, points, file, tree):
        self.points, self.file = points, file
        self.parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}

    def generic_visit(self, node):
        node = super().generic_visit(node)
        return self._wrapped(node) if isinstance(node, WRAPPED) else node

    def _wrapped(self, node):
        if not isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load):
            return node
        number = len(self.points)
        span = [self.file, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset]
        self.points.append((span, use_of(node, self.parents)))
        call = ast.Call(ast.Name(NAME, ast.Load()), [ast.Constant(number), node], [])
        for new in (call, call.func, call.args[0]):
            ast.copy_location(new, node)
        return call

    def visit_Call(self, node):
        # the function's own name is no value that travels; ``super()`` and method lookups stay as they are
        if isinstance(node.func, ast.Attribute):
            node.func.value = self.visit(node.func.value)
        elif not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        node.args = [self._argument(a) for a in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return self._wrapped(node)

    def _argument(self, node):
        if isinstance(node, ast.Starred):
            node.value = self.visit(node.value)
            return node
        return self.visit(node)

    def visit_Subscript(self, node):
        node.value = self.visit(node.value)  # an index is no value that travels, and a slice cannot be wrapped
        return self._wrapped(node)

    def visit_Starred(self, node):
        return self.generic_visit(node) if isinstance(node.ctx, ast.Load) else node

    def visit_FunctionDef(self, node):
        node.body = [self.visit(s) for s in node.body]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        node.body = [self.visit(s) for s in node.body]
        return node

    def visit_AnnAssign(self, node):
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_Delete(self, node):
        return node

    def visit_JoinedStr(self, node):
        return node

    def visit_Match(self, node):
        node.subject = self.visit(node.subject)
        for case in node.cases:
            if case.guard is not None:
                case.guard = self.visit(case.guard)
            case.body = [self.visit(s) for s in case.body]
        return node

    def visit_Global(self, node):
        return node

    visit_Nonlocal = visit_Import = visit_ImportFrom = visit_Global


class Probes:
    """Compiles the project's files with probes and reports what passes them."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.points = []
        self.others = recorder.others
        self._places = {}
        self._sizes = {}
        self._watched = {}
        setattr(builtins, NAME, self.probe)

    def compile(self, path, source):
        shown, editable = self.recorder.sites.file(path)
        if not editable:
            return compile(source, path, "exec", dont_inherit=True)
        count = len(self.points)
        try:
            tree = ast.parse(source, path)
            tree = ast.fix_missing_locations(_Wrap(self.points, shown, tree).visit(tree))
            return compile(tree, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, TypeError) as error:
            del self.points[count:]
            self.recorder.wire.send("note", text=f"{shown} could not be probed: {type(error).__name__}")
            return compile(source, path, "exec", dont_inherit=True)

    def install(self):
        """Modules of the project imported from now on are probed."""
        plain = importlib.machinery.SourceFileLoader.source_to_code
        probes = self

        def source_to_code(self, data, path, *, _optimize=-1):
            if probes.recorder.sites.file(path)[1]:
                return probes.compile(path, data)
            return plain(self, data, path, _optimize=_optimize)

        def get_code(self, fullname):
            path = self.get_filename(fullname)
            if probes.recorder.sites.file(path)[1]:
                return self.source_to_code(self.get_data(path), path)
            return plain_get_code(self, fullname)

        plain_get_code = importlib.machinery.SourceFileLoader.get_code
        importlib.machinery.SourceFileLoader.source_to_code = source_to_code
        importlib.machinery.SourceFileLoader.get_code = get_code
        sys.dont_write_bytecode = True

    def probe(self, point, value):
        try:
            if isinstance(value, torch.Tensor):
                self._see(point, value, value, ())
            elif isinstance(value, (tuple, list, dict)) and value and len(value) <= 256:
                self._look_inside(point, value, value, (), 3)
        except Exception as error:
            self.recorder.wire.send("agent-error", text=f"probe: {type(error).__name__}: {error}")
        return value

    def _look_inside(self, point, whole, value, path, depth):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            if isinstance(item, torch.Tensor):
                self._see(point, whole, item, (*path, key))
            elif depth and isinstance(item, (tuple, list, dict)) and len(item) <= 256:
                self._look_inside(point, whole, item, (*path, key), depth - 1)

    def _see(self, point, whole, tensor, path):
        recorder = self.recorder
        with torch._C.DisableTorchFunction():
            mark = recorder.mark_of(tensor)
            node = tensor.grad_fn
            if mark is None and node is None:
                return
            birth = recorder.births.of(tensor) if node is not None else None
            watched = recorder.watches(birth)
            if not watched and (mark is None or mark.live):
                key = (point, path)
                if recorder.makes_watched(birth):
                    recorder.unread.setdefault(birth, set()).add(key)
                elif len(self.others) < 20_000 or key in self.others:
                    self.others[key] = self.others.get(key, 0) + 1
            if watched or mark is not None:
                recorder.pass_place(tensor, birth, self._place(point, whole, path, birth if watched else None))

    def _place(self, point, whole, path, birth):
        key = (point, path)
        number = self._places.get(key)
        size = len(whole) if whole is not None and isinstance(whole, (tuple, list, dict)) else 0
        value = (birth[0], birth[2], birth[3]) if birth is not None else None
        if number is None or size > self._sizes[key] or (value is not None and value not in self._watched[key]):
            if number is None:
                number = self._places[key] = len(self._places)
                self.recorder.places[number] = self.points[point]
            self._sizes[key] = size
            watched = self._watched.setdefault(key, set())
            if value is not None:
                watched.add(value)
            self.recorder.wire.send(
                "place",
                id=number,
                point=self.points[point][0],
                path=plain(path),
                structure=structure(whole),
                watched=sorted(watched),
            )
        return number

    def report(self):
        for (point, path), count in self.others.items():
            self.recorder.wire.send("others", point=self.points[point][0], path=plain(path), count=count)


def plain(path):
    return [p if isinstance(p, (int, str)) else repr(p) for p in path]


def structure(value, depth=4):
    if isinstance(value, torch.Tensor):
        return "tensor" if value.requires_grad or value.is_floating_point() else "other"
    if depth == 0 or not isinstance(value, (tuple, list, dict)):
        return "other"
    if isinstance(value, dict):
        if not all(isinstance(k, str) for k in value):
            return ["dict", {repr(k): structure(v, depth - 1) for k, v in value.items()}]
        return ["dict", {k: structure(v, depth - 1) for k, v in value.items()}]
    inner = [structure(v, depth - 1) for v in list(value)[:64]]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [
            "namedtuple",
            type(value).__name__,
            [[f, s] for f, s in zip(value._fields, inner, strict=False)],
        ]
    return ["tuple" if isinstance(value, tuple) else "list", inner]
