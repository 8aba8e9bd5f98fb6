"""How large an edit is, in lines and tokens: the order in which patches are preferred."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from autodetach.model import Edit
from autodetach.source.apply import apply
from autodetach.source.module import SourceModule
from autodetach.source.text import NEWLINE

_TOKEN = re.compile(r"#.*|[^\W\d]\w*|\d[\w.]*|\"[^\"\n]*\"|'[^'\n]*'|[-+*/%@&|^<>=!:]+|\S")


def size(module: SourceModule, edits: Sequence[Edit]) -> tuple[int, int]:
    """Changed lines and changed tokens. What is replaced, or moved (perhaps to another depth), counts once.

    Raises ``SourceError`` where the edits overlap.
    """
    old = NEWLINE.split(module.text)
    new = NEWLINE.split(apply(module, edits))
    old, new = _without_common_ends(old, new)
    blocks = [
        (old[a:b], new[c:d])
        for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if tag != "equal"
    ]
    moved = _moved(blocks)
    gone_again, come_again = Counter(moved), Counter(moved)
    lines, tokens = moved.total(), sum(len(_TOKEN.findall(line)) for line in moved.elements())
    for gone, come in blocks:
        gone, come = _without(gone, gone_again), _without(come, come_again)
        lines += max(len(gone), len(come))
        tokens += _changed_tokens(gone, come)
    return lines, tokens


def _without(lines: Sequence[str], moved: Counter[str]) -> list[str]:
    """The lines that did not move; each that did is struck off ``moved``."""
    kept = []
    for line in lines:
        if moved[line.strip()] > 0:
            moved[line.strip()] -= 1
        else:
            kept.append(line)
    return kept


def _changed_tokens(gone: Sequence[str], come: Sequence[str]) -> int:
    old = _TOKEN.findall("\n".join(gone))
    new = _TOKEN.findall("\n".join(come))
    return sum(
        max(b - a, d - c)
        for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if tag != "equal"
    )


def _without_common_ends(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    limit = min(len(old), len(new))
    head = next((i for i in range(limit) if old[i] != new[i]), limit)
    limit -= head
    tail = next((i for i in range(limit) if old[-1 - i] != new[-1 - i]), limit)
    return old[head : len(old) - tail], new[head : len(new) - tail]


def _moved(blocks: Sequence[tuple[list[str], list[str]]]) -> Counter[str]:
    """Lines that were taken away in one place and put back, but for their indentation, in another."""
    gone = Counter(line.strip() for old, _ in blocks for line in old)
    come = Counter(line.strip() for _, new in blocks for line in new)
    return +Counter({line: count for line, count in (gone & come).items() if line})
