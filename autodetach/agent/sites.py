"""Where in the user's code a torch call stands: the chain of calls above it, innermost first.

The chain *is* the site: the same line of a discriminator's forward is another site when another line called it.
Frames of torch and of the standard library's import machinery are left out.
"""

import hashlib
import os
import sys
import sysconfig

import torch

from .program import Program

HERE = os.path.dirname(os.path.abspath(__file__))
_SKIPPED = (os.path.dirname(os.path.abspath(torch.__file__)) + os.sep, HERE + os.sep, "<frozen")
_INSTALLED = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})

_STARTS = (Program._run_script.__code__, Program._run_module.__code__)
BOTTOM = -1
"""Stands for the frame that runs the program: no frame below it is the program's."""
MOST_CODES = 20_000


class Sites:
    """Numbers the sites of one run; ``announce`` is told of each new one."""

    def __init__(self, root, announce, original=None):
        self.root = os.path.realpath(root) + os.sep
        # of a project of very many files some are links to the original: they are the user's own all the same
        self.roots = (self.root, os.path.realpath(original) + os.sep) if original else (self.root,)
        self._announce = announce
        # By id, for a code object is hashed by all that is in it, every time: id -> id of the first code object that is
        # equal, or None where its frames are left out. So that no id comes back, the objects are kept.
        self._numbers = {}
        self._codes = {}
        self._files = {}  # code object -> (shown name, editable) or None where its frames are left out
        self._firsts, self._by_id = {}, {}  # code object -> the first that is equal; and these by their ids
        self._positions = {}
        self._chains = {}
        self._known = {}

    def file(self, name):
        """The name shown for a source file and whether it belongs to the project."""
        path = os.path.realpath(name) if not name.startswith("<") else name
        for root in self.roots:
            if path.startswith(root) and "site-packages" not in path:
                return path[len(root) :].replace(os.sep, "/"), True
        return path, False

    def owns(self, function):
        """Whether a function, decorated or not, is defined in a file of the project."""
        while hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        code = getattr(function, "__code__", None)
        shown = self.shown(code) if code is not None else None
        return shown is not None and shown[1]

    def _number(self, code):
        """What stands for a code object in the key of a chain; None where its frames are left out."""
        if len(self._codes) > MOST_CODES:  # a program that compiles something anew in every step
            self._codes.clear()
            self._numbers.clear()
        self._codes[id(code)] = code
        if any(code is start for start in _STARTS):
            number = BOTTOM
        elif self.shown(code) is None:
            number = None
        else:
            first = self._firsts.setdefault(code, code)
            number = id(first)
            self._by_id[number] = first
        self._numbers[id(code)] = number
        return number

    def at(self, frame):
        """The site of ``frame``: a hash that is the same in every run of the same source."""
        key = []
        numbers = self._numbers
        while frame is not None:
            code = frame.f_code
            try:
                number = numbers[id(code)]
            except KeyError:
                number = self._number(code)
            if number is not None:
                if number is BOTTOM:
                    break
                key.append(number)
                key.append(frame.f_lasti)
            frame = frame.f_back
        key = tuple(key)
        site = self._chains.get(key)
        if site is None:
            site = self._chains[key] = self._new(key)
        return site

    def here(self, depth=1):
        return self.at(sys._getframe(depth + 1))

    def _new(self, key):
        firsts = self._by_id
        chain = [self._position(firsts[number], lasti) for number, lasti in zip(key[::2], key[1::2], strict=True)]
        site = hashlib.blake2b(repr(chain).encode(), digest_size=8).hexdigest()
        self._known[site] = chain
        self._announce(site, chain)
        return site

    def shown(self, code):
        """(shown file name, whether it may be edited) of a code object, or None where its frames are left out."""
        if code not in self._files:
            name = code.co_filename
            shown = None if name.startswith(_SKIPPED) or name.startswith("<string>") else self.file(name)
            if shown is not None and not shown[1] and name.startswith(_INSTALLED) and "site-packages" not in name:
                shown = None  # the standard library calls nothing by itself
            self._files[code] = shown
        return self._files[code]

    def position(self, code, lasti):
        """[file, line, column, end line, end column, function, editable] of an instruction."""
        self.shown(code)
        return self._position(code, lasti)

    def chain_of(self, site):
        return self._known[site]

    def _position(self, code, lasti):
        known = self._positions.get((code, lasti))
        if known is None:
            name, editable = self._files[code]
            line, end_line, column, end_column = list(code.co_positions())[lasti // 2]
            if line is None:
                line, end_line, column, end_column = code.co_firstlineno, code.co_firstlineno, 0, 0
            if column is None:  # -X no_debug_ranges
                column, end_column = 0, 0
            known = [name, line, column, end_line or line, end_column or 0, code.co_name, editable]
            self._positions[code, lasti] = known
        return known
