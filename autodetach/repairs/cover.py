"""From cuts to patches: the smallest sets of cuts that cover every reading that must be cut.

Not every subset is tried: the recording says what each cut covers, and sets are put together best first, always
covering the reading with the fewest choices next.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from itertools import count

from autodetach.diagnosis.findings import Reading
from autodetach.model import Candidate
from autodetach.repairs.interface import Cut, HasBook, candidate
from autodetach.repairs.places import OVERCUTS

MOST_SETS = 400
MOST_CANDIDATES = 40
CHOICES = 24


def covers(findings: HasBook, cuts: Sequence[Cut], required: frozenset[Reading]) -> Iterable[Candidate]:
    """Candidates made of ``cuts`` that together cover ``required``, the smallest first."""
    sizes = {}
    for cut in cuts:
        alone = candidate(findings.book, cut.remedy, cut.summary, cut.edits, preference=cut.preference)
        if alone is not None:
            # what is predicted to cut too much comes last, however small
            hopeless = alone.preference >= OVERCUTS
            sizes[cut] = (hopeless, alone.changed_lines, alone.preference, alone.changed_tokens)
    choices = {
        reading: sorted((c for c in sizes if reading in c.covers), key=lambda c: sizes[c])[:CHOICES]
        for reading in required
    }
    if not required or not all(choices.values()):
        return
    ticket = count()
    queue: list[tuple[bool, int, int, int, int, tuple[Cut, ...]]] = [(False, 0, 0, 0, next(ticket), ())]
    seen: set[frozenset[Cut]] = set()
    made = 0
    for _ in range(MOST_SETS * 10):
        if not queue or made >= MOST_CANDIDATES:
            return
        hopeless, lines, preference, tokens, _, chosen = heapq.heappop(queue)
        missing = required - frozenset().union(*(c.covers for c in chosen))
        if not missing:
            if any(required <= frozenset().union(*(c.covers for c in chosen if c is not one)) for one in chosen):
                continue  # one of them is not needed
            whole = _together(findings, chosen)
            if whole is not None:
                made += 1
                yield whole
            continue
        for cut in choices[min(missing, key=lambda r: (len(choices[r]), repr(r)))]:
            together = frozenset((*chosen, cut))
            if together in seen or len(together) > 6:
                continue
            seen.add(together)
            more = sizes[cut]
            heapq.heappush(
                queue,
                (
                    hopeless or more[0],
                    lines + more[1],
                    max(preference, more[2]),
                    tokens + more[3],
                    next(ticket),
                    (*chosen, cut),
                ),
            )


def _together(findings: HasBook, chosen: Sequence[Cut]) -> Candidate | None:
    remedies = list(dict.fromkeys(c.remedy for c in chosen))
    return candidate(
        findings.book,
        "+".join(remedies),
        "; ".join(dict.fromkeys(c.summary for c in chosen)),
        [e for c in chosen for e in c.edits],
        preference=max(c.preference for c in chosen),
    )
