"""The frozen records that travel between the rooms. No behaviour beyond what a record says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, order=True)
class Span:
    """A stretch of a source file, as CPython's ``co_positions`` gives it.

    ``file`` is the path relative to the project's root (POSIX), or absolute for a file outside the project. Lines
    count from 1; columns count UTF-8 bytes from 0; the end is exclusive.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    def contains(self, other: Span) -> bool:
        return (
            self.file == other.file
            and (self.line, self.column) <= (other.line, other.column)
            and (other.end_line, other.end_column) <= (self.end_line, self.end_column)
        )


@dataclass(frozen=True)
class Frame:
    """One call in user code: where it stands, the function it stands in, and whether the file may be edited."""

    span: Span
    function: str
    editable: bool


Chain = tuple[Frame, ...]
"""A reading or making site: the calls in user code that were under way, innermost first."""


class FailureKind(StrEnum):
    SECOND_BACKWARD = "second-backward"
    IN_PLACE = "in-place"
    NO_GRAD_FN = "no-grad-fn"
    UNUSED_INPUT = "unused-input"
    LEAF_IN_PLACE = "leaf-in-place"
    NUMPY_ON_GRAD = "numpy-on-grad"
    DEEPCOPY_NON_LEAF = "deepcopy-non-leaf"
    NON_SCALAR_ROOT = "non-scalar-root"
    GROWTH = "graph-growth"
    """No error: what ``--leaks`` looks for."""


@dataclass(frozen=True)
class Failure:
    """The autograd error that ended the program."""

    kind: FailureKind
    message: str
    chain: Chain
    steps: int
    """Optimizer steps (or backward passes where no optimizer is used) completed before it."""
    backwards: int
    """Backward passes completed before it."""


class Cause(StrEnum):
    CARRIED_STATE = "carried-state"
    ACCUMULATED_LOSS = "accumulated-loss"
    BUILT_ONCE = "built-once"
    DATA_WITH_GRAPH = "data-with-graph"
    SPURIOUS_LEAF = "spurious-leaf"
    GRAD_MODE_OFF = "grad-mode-off"
    SHARED_GRAPH = "shared-graph"
    DISCARDED_GRADIENT = "discarded-gradient"
    FIRST_ORDER_GRAD = "first-order-grad"
    IN_PLACE_CHANGE = "in-place-change"
    STALE_ROOT = "stale-root"
    CHECKPOINT = "checkpoint"
    NOT_DIFFERENTIABLE = "not-differentiable"
    VALUES_LEAVE_TORCH = "values-leave-torch"
    LEAF_WRITTEN = "leaf-written"
    GRAPH_COPIED = "graph-copied"
    INPUT_UNMARKED = "input-unmarked"
    INPUT_UNUSED = "input-unused"
    GRAPH_KEPT = "graph-kept"
    CUT_OFF = "cut-off"
    FROZEN_PARAMETERS = "frozen-parameters"
    NOT_A_NUMBER = "not-a-single-number"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Evidence:
    """One sentence of the story, and the place it speaks of."""

    text: str
    span: Span | None = None


@dataclass(frozen=True)
class Diagnosis:
    cause: Cause
    failure: Failure
    evidence: tuple[Evidence, ...]
    ways_out: tuple[str, ...] = ()
    """For a human: what each way out would mean for the training, where no patch is safe."""


@dataclass(frozen=True, order=True)
class Edit:
    """Replace ``text[start:end]`` (code points of the decoded file) by ``text``."""

    file: str
    start: int
    end: int
    text: str


class Level(StrEnum):
    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY_ONLY = "display-only"


@dataclass(frozen=True)
class Candidate:
    """A patch that some repair proposes. ``changed_lines`` and ``changed_tokens`` are its size."""

    remedy: str
    summary: str
    edits: tuple[Edit, ...]
    changed_lines: int
    changed_tokens: int
    preference: int = 0
    """Among equals in size: the lower is proposed first (the store before the use)."""
    same_values: bool = True
    """Whether the patched program's losses must be the broken program's, up to the first update."""
    level: Level = Level.SAFE
    """The best level this candidate can reach, whatever its run shows."""


@dataclass(frozen=True)
class Passed:
    criterion: str
    detail: str = ""


@dataclass(frozen=True)
class Rejected:
    criterion: str
    reason: str


@dataclass(frozen=True)
class Trial:
    """A candidate and what running it showed."""

    candidate: Candidate
    diff: str
    verdicts: tuple[Passed | Rejected, ...]
    level: Level | None
    """``None`` where it was rejected."""
    seconds: float

    @property
    def reason(self) -> str:
        return next((v.reason for v in self.verdicts if isinstance(v, Rejected)), "")


class Status(StrEnum):
    CLEAN = "clean"
    REPAIRED = "repaired"
    UNREPAIRED = "unrepaired"
    FAILED_OTHERWISE = "failed-otherwise"
    NOT_REACHED = "not-reached"


@dataclass(frozen=True)
class Device:
    """On what the program ran, as the runs themselves showed it.

    ``kind`` is ``cuda`` only where CUDA tensors took part in the failing call and in the run of the patch; ``name`` is
    the device's own. ``asked_for`` is ``cuda`` where what was meant for CUDA was done on the CPU.
    """

    kind: str = "cpu"
    name: str = ""
    asked_for: str = ""


@dataclass(frozen=True)
class Outcome:
    """Everything a report may say."""

    status: Status
    diff: str = ""
    diagnosis: Diagnosis | None = None
    trials: tuple[Trial, ...] = ()
    chosen: Trial | None = None
    detail: str = ""
    """For FAILED_OTHERWISE the program's own traceback; for NOT_REACHED how far it came."""
    isolation: str = ""
    device: Device = field(default_factory=Device)
    interpreter: str = ""
    torch: str = ""
    steps_proved: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    patched: Mapping[str, bytes] = field(default_factory=dict)
    """Project-relative path to the file's new bytes."""
    originals: Mapping[str, bytes] = field(default_factory=dict)


Json = dict[str, Any]
