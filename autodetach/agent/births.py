"""Who made each node: a table from sequence numbers to (site, occurrence), kept without keeping nodes alive.

torch numbers the nodes of a thread in the order of their making, so a call that made nodes owns a range of numbers.
A tensor's *birth* is (site, how many calls that site had made before, distance from the end of the range, output):
it is the same in every run of the same program, whatever else was cut. Calls none of whose nodes is alive any more
are forgotten now and then: the table grows with the graph, not with the number of steps.
"""

import threading
from array import array
from bisect import bisect_left, bisect_right

import torch

from . import graph

FORGET_FROM = 100_000
"""Entries from which on forgetting is worth a look at everything that is alive."""
sequence = torch._C._autograd._get_sequence_nr


class _Mine(threading.local):
    """This thread's table, once it has one."""

    table = None


class Births:
    def __init__(self):
        self._tables = {}
        self._mine = _Mine()
        self._counts = {}
        self.first_seen = {}  # site -> the sequence number when it ran first
        self._forget_at = FORGET_FROM

    def _table(self):
        table = self._mine.table = self._tables.setdefault(
            threading.get_ident(), (array("q"), array("q"), [], array("q"))
        )
        return table

    def forget(self):
        """Drop what made nothing that is still alive, if the table has doubled since the last time."""
        if sum(len(table[0]) for table in self._tables.values()) < self._forget_at:
            return
        numbers = sorted({node._sequence_nr() for node in graph.alive() if not graph.is_leaf_node(node)})
        for starts, ends, sites, occurrences in self._tables.values():
            kept = [i for i, (start, end) in enumerate(zip(starts, ends, strict=True)) if _any(numbers, start, end)]
            for column in (starts, ends, occurrences):
                column[:] = array("q", [column[i] for i in kept])
            sites[:] = [sites[i] for i in kept]
        self._forget_at = max(FORGET_FROM, 2 * sum(len(table[0]) for table in self._tables.values()))

    def occurrence(self, site):
        count = self._counts.get(site, 0)
        if not count:
            self.first_seen[site] = sequence()
        self._counts[site] = count + 1
        return count

    def add(self, start, end, site, occurrence):
        """The nodes numbered ``start`` to ``end`` (exclusive) were made by this call."""
        starts, ends, sites, occurrences = self._mine.table or self._table()
        starts.append(start)
        ends.append(end)
        sites.append(site)
        occurrences.append(occurrence)

    def range_of(self, number):
        """(site, occurrence, start, end) of the call that made node ``number``, or None."""
        for table in self._tables.values() if len(self._tables) > 1 else (self._table(),):
            starts, ends, sites, occurrences = table
            i = bisect_right(starts, number) - 1
            if i >= 0 and starts[i] <= number < ends[i]:
                return sites[i], occurrences[i], starts[i], ends[i]
        return None

    def of(self, tensor):
        """The birth of a tensor that has a graph, or None where no recorded call made it."""
        node = tensor.grad_fn
        if node is None:
            return None
        number = node._sequence_nr()
        made = self.range_of(number)
        if made is None:
            return None
        return made[0], made[1], made[3] - number, tensor.output_nr


def _any(numbers, start, end):
    """Whether one of the sorted numbers lies between ``start`` and ``end`` (exclusive)."""
    i = bisect_left(numbers, start)
    return i < len(numbers) and numbers[i] < end
