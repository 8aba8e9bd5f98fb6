"""Training without an optimizer: the leaves themselves tell what is updated."""

import weakref

import torch

from . import trajectory

NOTICED = 1e-5
"""A change by so much of a leaf's size is more than float32 rounds away."""


class ByHand:
    """``name_of`` gives the name of a leaf: its maker's site, or ``#`` and a number."""

    def __init__(self, name_of):
        self._name_of = name_of
        self._prints = {}  # leaf -> its fingerprint when it was last looked at
        self._first = {}  # what a leaf is called -> (weak reference, gradient, fingerprint) at its first backward

    def row(self, leaf, per_name):
        """``[name, norm of the gradient, fingerprint]`` of a leaf that a backward has just reached and that
        ``has_moved`` was asked about; ``per_name`` counts the leaves of each name in that backward."""
        name = self._name_of(leaf)
        per_name[name] = per_name.get(name, 0) + 1
        name = f"{name}.{per_name[name]}"
        with torch.no_grad():
            row = [name, trajectory.gradient_norm(leaf), self._prints[leaf._cdata]]
        if name not in self._first:
            self._first[name] = (weakref.ref(leaf), *row[1:])
        return row

    def knows(self, leaf):
        return leaf._cdata in self._prints

    def has_moved(self, leaf):
        """Whether the leaf's values have changed since they were last looked at."""
        with torch.no_grad():
            print_ = trajectory.fingerprint(leaf)
        before = self._prints.get(leaf._cdata, print_)
        self._prints[leaf._cdata] = print_
        return print_ != before

    def still(self):
        """The names of the leaves that have the values of their first backward still, though an update like that of
        the others would have moved them by more than rounding swallows."""
        still, rates = [], []
        for name, (reference, gradient, before) in self._first.items():
            leaf = reference()
            if leaf is None or not gradient or not all(isinstance(n, float) for n in (gradient, *before)):
                continue
            with torch.no_grad():
                now = trajectory.fingerprint(leaf)
            if now == before:
                still.append((name, gradient, before[0]))
            elif all(isinstance(n, float) for n in now):
                rates.append(max(abs(a - b) for a, b in zip(now, before, strict=True)) / gradient)
        return [name for name, gradient, size in still if rates and min(rates) * gradient > NOTICED * size]
