"""Text that a program made, made fit to be shown: no terminal escapes, nothing that turns a line around."""

from __future__ import annotations

import unicodedata

_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\ufeff")


def neutral(text: str, keep: str = "\t") -> str:
    r"""``text`` with each control, bidirectional mark and lone surrogate written out (``\x1b``, ``\u202e``).

    ``keep`` names the control characters that stay, for text of several lines ``"\t\n"``.
    """
    return "".join(c if c in keep or not _is_dangerous(c) else _written_out(c) for c in text)


def width(text: str) -> int:
    """The columns that a terminal gives to ``text`` (without tabs)."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) != 0 for c in text)


def _is_dangerous(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs") or character in _TURNING


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
