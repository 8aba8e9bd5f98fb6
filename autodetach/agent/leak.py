"""Which tensors are kept from step to step although nothing asks for their graphs any more.

After some steps every live tensor with a graph is counted by its kind (who made it, for whichever time). At the end
``leak`` {kind, count: [first, last], nodes: [first, last], parents: [kind, ...], places} tells of each kind that grows
in number, or whose graph grows; ``places`` are those that all the kept ones of that kind (if it is watched, or of a
watched parent) have passed.
"""

import gc

import torch

from . import graph
from .mend import Mended
from .recorder import recorder_failure

FIRST, EVERY = 3, 4
MOST_NODES = 20_000


def _below(node):
    """What a node is computed from, and what that is computed from: (node, output) each."""
    for parent, output in node.next_functions:
        yield parent, output
        yield from parent.next_functions if parent is not None else ()


class Leaking(Mended):
    def __init__(self, wire, root, request):
        super().__init__(wire, root, request)
        self._first = None
        self._last = None
        self.at_end.append(self._report_leaks)

    def _sample_live(self):
        super()._sample_live()
        if self.progress >= FIRST and (self._first is None or self.progress % EVERY == 0):
            self._count()

    @recorder_failure
    def _count(self):
        """Kind -> [how many live, the most nodes below one, the kinds of its parents, the places of all of them]."""
        found = {}
        with torch._C.DisableTorchFunction():
            gc.collect()
            kept = [o for o in gc.get_objects() if type(o) is torch.Tensor and o.grad_fn is not None]
            for tensor in kept:
                birth = self.births.of(tensor)
                if birth is None:
                    continue
                kind = (birth[0], birth[2], birth[3])
                row = found.setdefault(kind, [0, 0, {}, []])
                row[0] += 1
                row[1] = max(row[1], sum(1 for _ in graph.walk(tensor.grad_fn, MOST_NODES)))
                for node, output in _below(tensor.grad_fn):
                    made = self.births.range_of(node._sequence_nr()) if node is not None else None
                    if made is not None and not graph.is_leaf_node(node):
                        parent = (made[0], made[3] - node._sequence_nr(), output)
                        row[2].setdefault(parent, set()).add((made[0], made[1], *parent[1:]))
                if self.watches(birth):
                    row[3].append((tensor.grad_fn._sequence_nr(), self._passed.get(birth, set())))
        if self._first is None:
            self._first = found
        self._last = found

    def _report_leaks(self):
        if self._first is None or self._last is self._first:
            return
        for kind, (count, nodes, parents, places) in self._last.items():
            count_first, nodes_first, *_ = self._first.get(kind, [0, 0])
            if count > count_first + 1 or nodes > nodes_first + 4:
                # of many the newest may not be put aside yet
                ways = [passed for _, passed in sorted(places, key=lambda row: row[0])]
                ways = ways[: max(1, len(ways) // 2)] if count > 2 else ways
                below = {}
                for parent, births in parents.items():
                    passed = [self._passed[b] for b in births if b in self._passed]
                    below[parent] = set.intersection(*passed) if passed else set()
                self.wire.send(
                    "leak",
                    kind=kind,
                    count=[count_first, count],
                    nodes=[nodes_first, nodes],
                    parents=[[*parent, sorted(some)] for parent, some in below.items()],
                    places=sorted(set.intersection(*ways)) if ways else [],
                )
