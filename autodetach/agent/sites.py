"""Where in the user's code a torch call stands: the chain of calls above it, innermost first.

The chain *is* the site: the same line of a discriminator's forward is another site when another line called it.
Frames of torch and of the standard library's import machinery are left out.
"""

import hashlib
import os
import sys
import sysconfig

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
_SKIPPED = (os.path.dirname(os.path.abspath(torch.__file__)) + os.sep, HERE + os.sep, "<frozen")
_INSTALLED = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class Sites:
    """Numbers the sites of one run; ``announce`` is told of each new one."""

    def __init__(self, root, announce):
        self.root = os.path.realpath(root) + os.sep
        self._announce = announce
        self._files = {}  # code object -> (shown name, editable) or None where the frame is left out
        self._positions = {}
        self._chains = {}
        self._known = {}

    def file(self, name):
        """The name shown for a source file and whether it belongs to the project."""
        path = os.path.realpath(name) if not name.startswith("<") else name
        if path.startswith(self.root) and "site-packages" not in path:
            return path[len(self.root) :].replace(os.sep, "/"), True
        return path, False

    def _frame_file(self, code):
        try:
            return self._files[code]
        except KeyError:
            name = code.co_filename
            shown = None if name.startswith(_SKIPPED) or name.startswith("<string>") else self.file(name)
            if shown is not None and not shown[1] and name.startswith(_INSTALLED) and "site-packages" not in name:
                shown = None  # the standard library calls nothing by itself
            self._files[code] = shown
            return shown

    def at(self, frame):
        """The site of ``frame``: a hash that is the same in every run of the same source."""
        key = []
        files = self._files
        while frame is not None:
            code = frame.f_code
            shown = files[code] if code in files else self._frame_file(code)
            if shown is not None:
                key.append((code, frame.f_lasti))
            frame = frame.f_back
        key = tuple(key)
        site = self._chains.get(key)
        if site is None:
            site = self._chains[key] = self._new(key)
        return site

    def here(self, depth=1):
        return self.at(sys._getframe(depth + 1))

    def _new(self, key):
        chain = [self._position(code, lasti) for code, lasti in key]
        site = hashlib.blake2b(repr(chain).encode(), digest_size=8).hexdigest()
        self._known[site] = chain
        self._announce(site, chain)
        return site

    def shown(self, code):
        """(shown file name, whether it may be edited) of a code object, or None where its frames are left out."""
        return self._files[code] if code in self._files else self._frame_file(code)

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
