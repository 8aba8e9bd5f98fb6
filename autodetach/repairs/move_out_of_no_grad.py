"""Statements that feed the loss stand where grad mode is off: move them out, or end the mode where it should end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import ClassVar

from autodetach.diagnosis.recording import Shade
from autodetach.model import Candidate, Edit, Level
from autodetach.repairs.interface import Example, candidate
from autodetach.repairs.lost import Lost
from autodetach.source.edits.calls import drop_decorator
from autodetach.source.edits.lines import delete_statement, insert_after, insert_before
from autodetach.source.edits.move import move_out_of_with
from autodetach.source.statement import Statement

Option = tuple[str, int, tuple[Edit, ...], Level]
"""What it does in words, how good that is (the lower the better), the edits, and the best level it can reach."""


class MoveOutOfNoGrad:
    """The forward pass ran with grad mode off, so the loss has no graph.

    Only the statements that lie between the parameters and the loss leave the block; what was meant to be computed
    without gradients stays in it.
    """

    name: ClassVar[str] = "move-out-of-no-grad"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "the forward pass stands in the block",
            "with torch.no_grad():\n    out = net(x)\n    label = out.argmax(1)\nloss = f(out, label)\n",
            "out = net(x)\nwith torch.no_grad():\n    label = out.argmax(1)\nloss = f(out, label)\n",
        ),
        Example("leave alone: only labels are made in it", "with torch.no_grad():\n    label = teacher(x)\n", None),
    )

    def propose(self, lost: Lost) -> Iterable[Candidate]:
        """One candidate for each way to free every switch that the loss's way leads through."""
        options = [list(self._options(lost, switch, shades)) for switch, shades in lost.switches.items()]
        if not options or not all(options):
            return
        for chosen in product(*options):
            patch = candidate(
                lost.book,
                self.name,
                "; ".join(dict.fromkeys(words for words, _, _, _ in chosen)),
                [edit for _, _, edits, _ in chosen for edit in edits],
                preference=max(rank for _, rank, _, _ in chosen),
                level=Level.UNSAFE if any(level is Level.UNSAFE for *_, level in chosen) else Level.SAFE,
            )
            if patch is not None:
                yield patch

    def _options(self, lost: Lost, switch: str, shades: Sequence[Shade]) -> Iterable[Option]:
        frames = lost.frames(switch)
        if not frames:
            return
        statement = lost.book.statement(frames[0].span)
        if statement is None:
            return
        if statement.kind == "With":
            yield from self._out_of_with(lost, statement, shades)
        elif statement.kind == "Expr" and lost.recording.chain(switch)[0] == frames[0] and _alone(statement):
            yield from self._end_of_mode(statement)
        yield from self._without_decorator(lost, switch, shades)

    def _out_of_with(self, lost: Lost, block: Statement, shades: Sequence[Shade]) -> Iterable[Option]:
        children = block.body
        needed = set()
        for shade in shades:
            inside = [i for s in lost.statements(shade.site) for i, c in enumerate(children) if _holds(c, s)]
            needed.update(inside[:1])
        if not needed:
            return
        moved = _with_dependencies(children, needed)
        edits = move_out_of_with(block, moved)
        if edits is not None and len(moved) < len(children):
            lines = ", ".join(str(s.span.line) for s in moved)
            words = f"move line {lines} out of the block in line {block.span.line}"
            yield words, 0, edits, Level.SAFE
            weaker = _no_grad_instead(block) if any(s.inference for s in shades) else None
            if weaker is not None:
                yield f"{words}, and make that no_grad", 1, (*edits, weaker), Level.SAFE
        edits = move_out_of_with(block, children)
        if edits is not None:
            whole = len(moved) == len(children)
            level = Level.UNSAFE if self._two_meanings(lost, children, shades) else Level.SAFE
            yield f"dissolve the block in line {block.span.line}", 0 if whole else 1, edits, level

    @staticmethod
    def _two_meanings(lost: Lost, children: Sequence[Statement], shades: Sequence[Shade]) -> bool:
        """Whether the same parameters feed the loss through two statements that know nothing of each other.

        One may be the prediction and the other the target that the block was written for.
        """
        learners: dict[int, set[str]] = {}
        for shade in shades:
            for statement in lost.statements(shade.site):
                for i, child in enumerate(children):
                    if _holds(child, statement):
                        learners.setdefault(i, set()).add(shade.learner)
        pairs = ((i, j) for i in learners for j in learners if i < j)
        return any(learners[i] & learners[j] and children[i].independent_of(children[j]) for i, j in pairs)

    @staticmethod
    def _end_of_mode(statement: Statement) -> Iterable[Option]:
        """``torch.set_grad_enabled(False)``: switch it on again at the function's end, else never switch it off."""
        function = statement.function
        place = f"line {statement.span.line}"
        if function is not None and "(False" in statement.code:
            code = statement.code.replace("(False", "(True", 1)
            last = function.body[-1]
            back = insert_before(last, code) if last.kind == "Return" else insert_after(last, code)
            if back is not None:
                yield f"switch grad mode on again where the function of {place} ends", 0, (back,), Level.SAFE
        gone = delete_statement(statement)
        if gone is not None:
            yield f"do not switch grad mode off in {place}", 1, (gone,), Level.SAFE

    @staticmethod
    def _without_decorator(lost: Lost, switch: str, shades: Sequence[Shade]) -> Iterable[Option]:
        """``@torch.no_grad()``: the mode is switched in torch's own wrapper, called where the function is called."""
        outer = lost.recording.chain(switch)
        for shade in shades:
            chain = lost.recording.chain(shade.site)
            inner = chain[: len(chain) - len(outer)]
            if not inner or chain[len(inner) :] != outer or not inner[-1].editable:
                continue
            statement = lost.book.statement(inner[-1].span)
            function = statement.function if statement is not None else None
            if function is None:
                continue
            for decorator in function.decorators:
                if any(word in decorator.code for word in ("no_grad", "inference_mode", "set_grad_enabled")):
                    edit = drop_decorator(function, decorator)
                    if edit is not None:
                        yield f"drop @{decorator.code} in line {decorator.span.line}", 0, (edit,), Level.SAFE
                        return


def _no_grad_instead(block: Statement) -> Edit | None:
    """What is made in inference mode can never be saved for backward; without gradients it can."""
    source = block.tree.source
    header = source.text[block.start : block.body[0].start]
    at = header.find("inference_mode")
    if at < 0 or header.count("inference_mode") > 1:
        return None
    start = block.start + at
    return Edit(source.name, start, start + len("inference_mode"), "no_grad")


def _alone(statement: Statement) -> bool:
    return statement.is_simple and "(" in statement.code


def _holds(outer: Statement, inner: Statement) -> bool:
    return outer.node is inner.node or any(b.node is outer.node for b in inner.blocks)


def _with_dependencies(children: Sequence[Statement], needed: set[int]) -> list[Statement]:
    """The needed statements and those of the block that they depend on; the rest stays in order behind them."""
    chosen = set(needed)
    for i in range(len(children) - 1, -1, -1):
        if i in chosen:
            continue
        if any(j in chosen and not children[j].independent_of(children[i]) for j in range(i + 1, len(children))):
            chosen.add(i)
    return [children[i] for i in sorted(chosen)]
