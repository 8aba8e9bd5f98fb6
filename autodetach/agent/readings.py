"""What a reading site takes beside what is cut there: the history that tells whether that is meant, too.

A *kind* of reading is ``(maker's site, distance, output, reading site, call, operand)``, whichever the tensor. A
*window* is the number of backwards before a reading.
"""

import torch

MOST = 4000
"""Tensors read alive that are remembered."""


class Readings:
    """``kinds`` are those that an earlier run cut."""

    def __init__(self, kinds):
        self._kinds = set(kinds)
        self._kinds_anywhere = {_anywhere(kind) for kind in self._kinds}
        self.sites = {kind[3] for kind in self._kinds}
        self._drawn = set()  # kinds whose tensors may be read first when they are stale already: drawn from a memory
        self._alive_first = set()  # kinds some of whose tensors are read alive first and stale later
        self._cut_windows = {}  # kind -> windows of its cut readings
        self._stale_windows = {}  # kind -> windows of its stale readings
        self._alive = {}  # (kind, birth of a tensor just made) -> the window of its first reading
        self._alive_anywhere = set()  # the same, wherever in a list
        self._lengths = {}  # (site, argument) -> the lengths of the lists that were handed over there
        self._uncut = {}  # kind -> windows of its readings that were not cut
        self._made_alive = {}  # kind -> backwards before the making of what was read alive
        self._used_up = {}  # (kind, backwards before the making) -> windows of its cut readings
        self._starts = {}  # (site, call, operand) of a reading that is cut later -> whether it read data at first

    def handed_over(self, site, argument, length):
        """A list of that length is an argument there."""
        self._lengths.setdefault((site, argument), set()).add(length)

    def alive(self, kind, birth, window, made, fresh):
        """A tensor is read that is not cut; ``fresh`` ones were made since the last backward."""
        if kind in self._kinds:
            self._uncut.setdefault(kind, set()).add(window)
            self._made_alive.setdefault(kind, set()).add(made)
        if fresh and len(self._alive) < MOST and _anywhere(kind) in self._kinds_anywhere:
            self._alive.setdefault((kind, birth), window)
            self._alive_anywhere.add((_anywhere(kind), birth))

    def cut(self, kind, birth, window, made, stale):
        """A tensor is read that is cut, because it is stale or because the replay wants it."""
        self._kinds.add(kind)
        self._kinds_anywhere.add(_anywhere(kind))
        self.sites.add(kind[3])
        self._cut_windows.setdefault(kind, set()).add(window)
        if not stale:
            self._alive_first.add(kind)
        else:
            windows = self._stale_windows.setdefault(kind, set())
            if windows and made > min(windows) and not self._read_alive(kind, birth):
                self._drawn.add(kind)
            windows.add(window)
        self._used_up.setdefault((kind, made), set()).add(window)

    def start(self, tensor, site, name, path):
        """A reading that is cut in later steps takes a tensor without a graph: a state at its start is one value all
        over, data is not."""
        key = (site, name, path)
        if key not in self._starts and tensor.is_floating_point() and tensor.numel() > 1 and not tensor.requires_grad:
            with torch.no_grad():
                self._starts[key] = bool((tensor != tensor.reshape(-1)[0]).any())

    @property
    def started_with_data(self):
        """The readings, cut later, that took data at first."""
        return sorted(key for key, data in self._starts.items() if data)

    def beside(self, pairs):
        """What each kind took beside what was cut; ``pairs`` are ``(birth, site, call, operand)`` of all that was.

        ``collected`` kinds take old tensors together with new ones that turn stale later: a list that is never emptied.
        ``apart`` kinds take between two backwards either what is cut or what lives, never both, and have tensors that
        are read alive first and stale later, or were made at once and are used up one after the other: what lives there
        has only not yet turned stale (it is drawn again later, or beyond the run). ``drawn`` kinds come out of a
        memory, fresh or stale as chance has it.
        """
        where = {kind: self._wherever(kind) for kind in (*self._kinds, *(k for k, _ in self._alive))}
        stale = set(pairs)
        stale |= {(birth, site, name, path[:1]) for birth, site, name, path in stale}
        stale_windows = {}
        for kind, windows in self._stale_windows.items():
            stale_windows.setdefault(where[kind], set()).update(windows)
        together = {
            where[kind]
            for (kind, birth), window in self._alive.items()
            if window in stale_windows.get(where[kind], ()) and (birth, *where[kind][3:]) in stale
        }
        collected = {kind for kind in self._kinds if where[kind] in together}
        apart = [
            kind
            for kind, windows in self._uncut.items()
            if (kind in self._alive_first or self._was_made_at_once(kind))
            and not windows & self._cut_windows.get(kind, windows)
        ]
        return {
            "apart": sorted(apart),
            "drawn": sorted(collected & self._drawn),
            "collected": sorted(collected - self._drawn),
        }

    def _was_made_at_once(self, kind):
        """Whether what was read alive was made together with what turned stale, one after the other, before it was
        read: the outputs of a whole epoch, say. (A state is read in the step after its making.)"""
        return any(len(self._used_up.get((kind, made), ())) > 1 for made in self._made_alive.get(kind, ()))

    def _wherever(self, kind):
        """The kind; without the place in the list where a list is handed over that fills and empties."""
        return _anywhere(kind) if len(self._lengths.get((kind[3], kind[5][0]), ())) > 1 else kind

    def _read_alive(self, kind, birth):
        return (kind, birth) in self._alive or (
            self._wherever(kind) != kind and (_anywhere(kind), birth) in self._alive_anywhere
        )


def _anywhere(kind):
    """A kind of reading, wherever in a list the tensor stands."""
    return (*kind[:5], kind[5][:1])
