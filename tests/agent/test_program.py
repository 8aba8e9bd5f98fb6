"""The agent starts a program exactly as ``python`` would: each is run both ways, and its user sees the same."""

from __future__ import annotations

import re

import pytest

UNLIKE = re.compile(
    r"0x[0-9a-f]{6,}"
    r"|(?<=Previous line repeated )\d+"  # how deep the stack is below the program
    r'|  File "<frozen runpy>", line \d+, in \w+\n'  # who starts it
    r"|(?<=/)work/\.\./"
)


def assert_alike(plain, under):
    """Status and output are the same, but for addresses and the like."""
    seen = [(r.status, UNLIKE.sub("", r.stdout), UNLIKE.sub("", r.stderr)) for r in (plain, under)]
    assert seen[1] == seen[0]


def programs(text):
    """``=== name``, then a main.py; or ``$ command`` and files, each behind ``--- name``."""
    found = {}
    for section in text.strip().removeprefix("=== ").split("\n=== "):
        name, _, source = section.partition("\n")
        if not source.startswith("$ "):
            found[name] = ({"main.py": source + "\n"}, {})
            continue
        command, *files = source.split("\n--- ")
        word = command.removeprefix("$ ")
        how = {"module": word.removeprefix("-m ")} if word.startswith("-m ") else {"entry": word}
        found[name] = ({file.partition("\n")[0]: file.partition("\n")[2] + "\n" for file in files}, how)
    return found


REPORT = """
import json, os, sys
print(json.dumps({
    "argv": sys.argv,
    "path": sys.path[0],
    "rest": [p for p in sys.path[1:] if "project" in p],
    "names": {k: repr(v).split(" object at")[0] for k, v in sorted(globals().items()) if k.startswith("__")},
    "main": sys.modules["__main__"].__dict__ is globals(),
    "cwd": os.getcwd(),
    "loader": type(__loader__).__name__,
    "spec": __spec__ and [__spec__.name, __spec__.origin, __spec__.parent, __spec__.cached],
}, indent=1))
if __name__ == "__main__":
    print("main")
"""

STARTS = {
    "script": ({"main.py": REPORT}, {}),
    "script in a folder": ({"sub/deep/main.py": REPORT}, {"entry": "sub/deep/main.py"}),
    "from a folder below": ({"main.py": REPORT, "work/x.txt": ""}, {"cwd": "work"}),
    "spaces and non-ASCII": (
        {"mit leer/trän ü.py": REPORT},
        {"folder": "mein projekt é", "entry": "mit leer/trän ü.py"},
    ),
    "module": ({"main.py": REPORT}, {"module": "main"}),
    "module in a package": ({"pkg/__init__.py": "", "pkg/run.py": REPORT}, {"module": "pkg.run"}),
    "package": ({"pkg/__init__.py": "import sys; print(sys.argv)", "pkg/__main__.py": REPORT}, {"module": "pkg"}),
    "namespace package": ({"ns/run.py": REPORT}, {"module": "ns.run"}),
}


@pytest.mark.parametrize("name", STARTS)
def test_what_a_program_knows_of_itself(both, name):
    files, how = STARTS[name]
    plain, under = both(files, "--lr", "0.1", "ä b", **how)
    assert_alike(plain, under)
    assert plain.status == 0 and '"argv"' in plain.stdout


ENDS = programs(r"""
=== nothing
print('done')
=== exit
import sys; print('out'); sys.exit()
=== exit 3
import sys; sys.exit(3)
=== exit -1
import sys; sys.exit(-1)
=== exit 256
import sys; sys.exit(256)
=== exit True
import sys; sys.exit(True)
=== exit with words
import sys; print('out'); sys.exit('no data in /tmp/ä')
=== exit with a tuple
import sys; sys.exit((1, 'two'))
=== SystemExit
raise SystemExit
=== quit
print('before'); quit(4)
=== os._exit
import os; print('flushed', flush=True); os._exit(9)
=== abort
import os, signal; os.kill(os.getpid(), signal.SIGABRT)
=== segfault
import os, signal; os.kill(os.getpid(), signal.SIGSEGV)
=== interrupt
print('on it', flush=True); raise KeyboardInterrupt
=== error
def f(x):
    return 1 / x

print('before')
f(0)
=== chained
try:
    {}['key']
except KeyError as e:
    raise ValueError('bad') from e
=== in its context
try:
    {}['key']
except KeyError:
    open('missing.csv')
=== group
raise ExceptionGroup('several', [ValueError(1), TypeError('two')])
=== with notes
e = ValueError('x')
e.add_note('look at ä')
raise e
=== syntax
import sys
def f(:
    pass
=== indentation
if True:
print(1)
=== syntax in a string
compile('a b', 'given', 'exec')
=== recursion
def f(n):
    return f(n + 1)

f(0)
=== excepthook
import sys
sys.excepthook = lambda kind, e, trace: print('hook', kind.__name__, e)
1 / 0
=== broken excepthook
import sys
sys.excepthook = lambda *_: nothing
1 / 0
=== no stdin
import sys
try:
    input('? ')
except EOFError as e:
    print(repr(e))
print(sys.stdin.read() == '', sys.stdin.isatty())
=== needs stdin
n = int(input('how many? '))
=== own exception
class Mine(Exception):
    def __str__(self):
        return 'mine\ntwo lines'

raise Mine
""")


@pytest.mark.parametrize("name", ENDS)
def test_how_a_program_ends(both, name):
    files, _ = ENDS[name]
    plain, under = both(files)
    assert_alike(plain, under)


EXITS = programs(r"""
=== handlers
import atexit
atexit.register(print, 'first registered')
atexit.register(print, 'last')
print('body')
=== handlers after an error
import atexit
atexit.register(print, 'bye')
1 / 0
=== handlers after sys.exit
import atexit, sys
atexit.register(print, 'bye')
sys.exit(5)
=== a failing handler
import atexit
def f():
    1 / 0
atexit.register(print, 'still')
atexit.register(f)
=== buffered output
import sys
sys.stdout.write('no newline')
sys.stderr.write('nor here')
=== the first stdout
import sys
sys.__stdout__.write('by the back door\n')
print('to the first stderr', file=sys.__stderr__)
=== a tee that flushes nothing
import sys
class Tee:
    def __init__(self, stream):
        self.stream = stream
    def write(self, text):
        self.stream.write(text.upper())
    def flush(self):
        pass
sys.stdout = Tee(sys.stdout)
print('loud')
=== threads go on
import threading, time
def f():
    time.sleep(0.2)
    print('thread ends')
threading.Thread(target=f).start()
print('main ends')
=== threads go on after an error
import threading, time
def f():
    time.sleep(0.2)
    print('thread ends')
threading.Thread(target=f).start()
1 / 0
=== a thread fails
import threading
def f():
    raise ValueError('in a thread')
t = threading.Thread(target=f, name='worker')
t.start()
t.join()
print('main ends')
=== daemons do not go on
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
=== pool
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)
pool.submit(print, 'from the pool')
=== redirected
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()) as s:
    print('inside')
print(repr(s.getvalue()))
=== raw descriptors
import os
os.write(1, b'one\n')
os.write(2, b'two\n')
=== encodings
import sys
print(sys.stdout.encoding, sys.stderr.errors, ascii('ä'), 'ä')
print('\udcff', file=sys.stderr)
=== warnings
import warnings
warnings.warn('careful')
=== generators
def g():
    try:
        yield 1
    finally:
        print('closed')

next(g())
""")


@pytest.mark.parametrize("name", EXITS)
def test_what_comes_out_at_the_end(both, name):
    files, _ = EXITS[name]
    plain, under = both(files)
    assert_alike(plain, under)


FILES = programs(r"""
=== packages and relative imports
$ run.py
--- run.py
from pkg.a import value
import helper
print(value, helper.__file__, helper.__name__)
--- helper.py
--- pkg/__init__.py
--- pkg/a.py
from .sub.b import value
from . import sub
print(sub.__path__, __package__)
--- pkg/sub/__init__.py
--- pkg/sub/b.py
from ..c import value
--- pkg/c.py
value = 7
=== relative imports of a module
$ -m pkg.run
--- pkg/__init__.py
--- pkg/run.py
from .c import value
print(value, __package__)
--- pkg/c.py
value = 7
=== relative import of a script
$ pkg/run.py
--- pkg/run.py
from .c import value
--- pkg/c.py
value = 7
=== an error in another file
$ main.py
--- main.py
import other
other.go()
--- other.py
def go():
    return [1][5]
=== an error in a module
$ -m pkg.run
--- pkg/__init__.py
--- pkg/run.py
import sys
print(sys.argv)
1 / 0
=== a syntax error in another file
$ main.py
--- main.py
import other
--- other.py
x = = 1
=== data
$ src/main.py
--- src/main.py
import os
print(open('data/x.csv').read())
here = os.path.dirname(os.path.abspath(__file__))
print(open(os.path.join(here, 'y.txt')).read())
os.chdir('data')
print(os.path.exists('x.csv'), os.path.exists(__file__))
--- data/x.csv
1,2
--- src/y.txt
beside
=== source of its own
$ main.py
--- main.py
import inspect, sys
def f():
    return 'ä'
print(inspect.getsource(f))
print(inspect.getfile(f))
print(inspect.getsource(sys.modules['__main__'])[:20])
=== pickle of its own classes
$ main.py
--- main.py
import pickle
class A:
    pass
print(type(pickle.loads(pickle.dumps(A()))), A.__module__)
=== dataclasses and annotations
$ main.py
--- main.py
from dataclasses import dataclass
from typing import get_type_hints
@dataclass
class A:
    x: 'int' = 1
y: int = 2
print(get_type_hints(A), A(), __annotations__)
=== imports itself
$ main.py
--- main.py
import main, sys
print(__name__, main.__name__, main is sys.modules['__main__'])
=== future
$ main.py
--- main.py
from __future__ import annotations
def f(x: undefined): ...
print(f.__annotations__)
=== no such module
$ -m missing
--- x.py
=== no such submodule
$ -m pkg.missing
--- pkg/__init__.py
=== a package that cannot be run
$ -m pkg
--- pkg/__init__.py
=== a parent that fails
$ -m pkg.run
--- pkg/__init__.py
1 / 0
--- pkg/run.py
""")

BYTES = {
    "latin-1": b"# -*- coding: latin-1 -*-\nprint(ascii('\xe4'))\n1 / 0  # \xfc\n",
    "cookie in line 2": b"#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\nprint(ascii('\x80'))\n",
    "bom": b"\xef\xbb\xbfprint('a')\n1 / 0\n",
    "crlf, tabs, form feed": b"if 1:\r\n\tprint('a')\r\n\x0c\r\ndef f():\r\n\treturn 1 / 0\r\nf()\r\n",
    "only carriage returns": b"print(1)\rprint(2)\r",
    "no cookie": b"x = 1\n# caf\xe9\nprint(x)\n",
    "no cookie in line 1": b"# caf\xe9\nprint(1)\n",
    "empty": b"",
    "no newline at the end": b"print(1)",
}


@pytest.mark.parametrize("name", FILES)
def test_files_around_it(both, name):
    files, how = FILES[name]
    plain, under = both(files, **how)
    assert_alike(plain, under)


@pytest.mark.parametrize("name", BYTES)
def test_encodings_and_layouts(both, name):
    plain, under = both({"main.py": BYTES[name]})
    assert_alike(plain, under)


def test_an_unknown_encoding(both):
    plain, under = both({"main.py": b"# coding: klingon\nx = 1\n"})
    assert (under.status, under.stdout) == (plain.status, plain.stdout) == (1, "")
    assert "klingon" in under.stderr and "SyntaxError" in under.stderr and "Traceback" not in under.stderr


CHILDREN = """
    import multiprocessing as mp
    import os, sys

    def work(q, n):
        q.put((n, __name__ in ("__main__", "__mp_main__"), n * n))

    def square(n):
        return n * n

    def fails(n):
        raise ValueError(f"child {n}")

    def leaves():
        sys.exit(7)

    if __name__ == "__main__":
        METHOD
        q = mp.Queue()
        children = [mp.Process(target=work, args=(q, n)) for n in range(3)]
        for c in children:
            c.start()
        print(sorted(q.get() for _ in children))
        for c in children:
            c.join()
        print([c.exitcode for c in children])
        with mp.Pool(2) as pool:
            print(pool.map(square, range(5)))
            try:
                pool.map(fails, [1])
            except ValueError as error:
                print("raised", error)
        one = mp.Process(target=leaves)
        one.start()
        one.join()
        print(one.exitcode)
        print(os.getpid() == mp.current_process().pid, mp.parent_process())
"""
METHODS = ["pass", "mp.set_start_method('spawn')", "mp = mp.get_context('spawn')", "mp = mp.get_context('forkserver')"]


@pytest.mark.parametrize("method", METHODS)
def test_children(both, method):
    plain, under = both(CHILDREN.replace("METHOD", method))
    assert_alike(plain, under)
    assert "[0, 1, 4, 9, 16]" in plain.stdout


def test_process_pools_and_managers(both):
    plain, under = both(
        """
        import multiprocessing as mp
        from concurrent.futures import ProcessPoolExecutor
        import subprocess, sys

        def square(n):
            return n * n

        if __name__ == "__main__":
            with ProcessPoolExecutor(2, mp_context=mp.get_context("spawn")) as pool:
                print(list(pool.map(square, range(4))))
            with mp.Manager() as manager:
                d = manager.dict(a=1)
                print(d)
            print(subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True).stdout)
        """
    )
    assert_alike(plain, under)
    assert plain.status == 0
