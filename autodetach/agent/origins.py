"""Whether what a model is fed also makes the target that its output is compared with: then it is data.

The run is given the sites of leaves that require gradients and that nobody optimises (``leaves``). ``compared``
{backward, site, leaves} tells of an operation between a loss and the last parameters that took, beside what the model
made of such a leaf, values without a graph that were computed from the same leaf by no parameter. ``looked`` {sites}
are the makers of leaves whose gradients the program asks for after all.
"""

import torch

from .operands import tensors
from .recorder import recorder_failure
from .trace import Traced, ancestors


class Origins(Traced):
    def __init__(self, wire, root, request):
        super().__init__(wire, root, request)
        self._suspects = frozenset(self.interventions.get("leaves") or ())
        self._looked = set()
        self._said = set()
        self.at_end.append(lambda: wire.send("looked", sites=sorted(self._looked)))

    # -- who reads a gradient ---------------------------------------------------------------------------------------

    def attribute(self, func, args, kwargs):
        if func.__self__.__name__ == "grad" and not self.paused:
            self._look(args[0])
        return super().attribute(func, args, kwargs)

    def backward(self, plain, call, roots, args, kwargs, retain, create):
        for leaf in tensors(args[1]) if call == "grad" and len(args) > 1 else ():
            self._look(leaf)
        return super().backward(plain, call, roots, args, kwargs, retain, create)

    @recorder_failure
    def _look(self, leaf):
        known = self._leaf_sites.get(leaf._cdata)
        if known is not None:
            self._looked.add(known[0])

    # -- what the loss compares -------------------------------------------------------------------------------------

    def before_backward(self, call, roots, site, number, retain, create):
        if call == "backward":
            self._compare(roots, number)
        return super().before_backward(call, roots, site, number, retain, create)

    @recorder_failure
    def _compare(self, roots, number):
        suspects = {}
        for site, leaf in self._leaf_sites.values():
            if site in self._suspects and leaf() is not None:
                suspects[self._value(leaf())] = site
        for value in self._loss_part([self._value(root) for root in roots], suspects):
            told = (value.site, *sorted(self._both_of(value, suspects)))
            if len(told) > 1 and told not in self._said:
                self._said.add(told)
                self.wire.send("compared", backward=number, site=value.site, leaves=told[1:])

    def _both_of(self, value, suspects):
        """The leaves from which the model made one operand, and the program alone another, without a graph."""
        model, target = set(), set()
        for operand in value.parents:
            below = ancestors([operand])
            leaves = {suspects[v] for v in below if v in suspects}
            learned = any(_learns(v, suspects) for v in below)
            if learned and operand.graph:
                model |= leaves
            elif not learned and not operand.graph and not operand.single:
                target |= leaves
        return model & target

    @staticmethod
    def _loss_part(roots, suspects):
        """The values between the loss and the last operations that took a parameter, those left out."""
        seen, todo = set(), list(roots)
        while todo:
            value = todo.pop()
            if value in seen or any(_learns(parent, suspects) for parent in value.parents):
                continue
            seen.add(value)
            yield value
            todo += [parent for parent in value.parents if parent.graph]


def _learns(value, suspects):
    """Whether a value is a parameter, or another leaf that gradients are wanted of."""
    tensor = value.tensor()
    return value not in suspects and isinstance(tensor, torch.Tensor) and tensor.is_leaf and tensor.requires_grad
