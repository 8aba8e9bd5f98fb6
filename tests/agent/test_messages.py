"""The table of wordings: every release's message is told by its kind, and nothing else is."""

from __future__ import annotations

import pytest

from autodetach.agent.messages import KINDS, kind_of
from autodetach.model import FailureKind

WORDINGS = {
    "second-backward": [
        "Trying to backward through the graph a second time, but the buffers have already been freed. "
        "Specify retain_graph=True when calling backward the first time.",
        "Trying to backward through the graph a second time, but the saved intermediate results have already been "
        "freed. Specify retain_graph=True when calling .backward() or autograd.grad() the first time.",
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad().",
    ],
    "in-place": [
        "one of the variables needed for gradient computation has been modified by an inplace operation",
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [10, 3]], which is output 0 of TBackward, is at version 2; expected version 1 instead.",
    ],
    "no-grad-fn": [
        "element 0 of variables does not require grad and does not have a grad_fn",
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ],
    "unused-input": [
        "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this "
        "is the desired behavior.",
        "The differentiated Tensor at index 0 appears to not have been used in the graph. Set allow_unused=True if "
        "this is the desired behavior.",
        "One of the differentiated Tensors does not require grad",
    ],
    "leaf-in-place": [
        "a leaf Variable that requires grad has been used in an in-place operation.",
        "a leaf Variable that requires grad is being used in an in-place operation.",
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
    ],
    "numpy-on-grad": [
        "Can't call numpy() on Variable that requires grad. Use var.detach().numpy() instead.",
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
    ],
    "deepcopy-non-leaf": [
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment"
    ],
    "non-scalar-root": ["grad can be implicitly created only for scalar outputs"],
}
OTHERS = [
    "CUDA out of memory. Tried to allocate 2.00 GiB",
    "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
    "expected scalar type Float but found Double",
    "",
]


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, texts in WORDINGS.items() for t in texts])
def test_every_wording_has_its_kind(kind, text):
    assert kind_of(RuntimeError(text)) == kind


@pytest.mark.parametrize("text", OTHERS)
def test_other_errors_have_none(text):
    assert kind_of(RuntimeError(text)) is None


def test_only_the_kinds_of_exception_that_torch_raises():
    text = WORDINGS["second-backward"][2]
    assert kind_of(ValueError(text)) is None and kind_of(KeyboardInterrupt(text)) is None


def test_both_sides_know_the_same_kinds():
    assert {kind for kind, _ in KINDS} == {kind.value for kind in FailureKind} - {FailureKind.GROWTH}  # no error
