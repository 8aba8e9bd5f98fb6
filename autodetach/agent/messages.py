"""The autograd errors this tool is about, by the wordings that torch releases have used."""

KINDS = (
    # 1.9 and later; 1.5 to 1.8 ("saved intermediate results"); before ("the buffers")
    ("second-backward", ("Trying to backward through the graph a second time",)),
    ("in-place", ("has been modified by an inplace operation",)),
    # before 2.12 "One of the differentiated Tensors"; since then "The differentiated Tensor at index 0"
    ("unused-input", ("appears to not have been used in the graph",
                      "One of the differentiated Tensors does not require grad")),
    ("no-grad-fn", ("does not require grad and does not have a grad_fn",
                    "element 0 of variables does not require grad")),
    ("leaf-in-place", ("a leaf Variable that requires grad is being used in an in-place operation",
                       "a view of a leaf Variable that requires grad is being used in an in-place operation",
                       "a leaf Variable that requires grad has been used in an in-place operation")),
    ("numpy-on-grad", ("Can't call numpy() on Tensor that requires grad",
                       "Can't call numpy() on Variable that requires grad")),
    ("deepcopy-non-leaf", ("Only Tensors created explicitly by the user",)),
    ("non-scalar-root", ("grad can be implicitly created only for scalar outputs",)),
)  # fmt: skip


def kind_of(error):
    """The slug of an autograd error, or None for any other exception."""
    if not isinstance(error, (RuntimeError, TypeError)):
        return None
    text = str(error)
    for kind, wordings in KINDS:
        if any(w in text for w in wordings):
            return kind
    return None
