"""Text of a hostile program on somebody's terminal."""

from __future__ import annotations

import re
import unicodedata

_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(?:\x07|\x1b\\|$)|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]", re.DOTALL
)


def neutralise(text: str) -> str:
    """Without terminal escapes; other control and direction-changing characters are shown as ``\\xNN``.

    Newlines and tabs stay; of a line rewritten by carriage returns (a progress bar) the last state stays.
    """
    lines = _SEQUENCE.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(_shown(line.rstrip("\r").rpartition("\r")[2]) for line in lines)


def _shown(line: str) -> str:
    return "".join(
        char if char == "\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else _escaped(char)
        for char in line
    )


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"
