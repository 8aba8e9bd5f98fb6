"""Run a program as ``python`` does, and end it at once after its N-th step: ``plain.py N KIND ENTRY [ARGS…]``.

KIND says what is counted: ``steps`` of optimizers, or ``backwards`` where the program updates by hand. N = 0 for a run
to its end. Nothing else is touched, so that the time is the user's own.
"""

import os
import runpy
import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


def main():
    most, kind, entry = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    sys.argv[:] = sys.argv[3:]
    seen = [0]

    def count(*_):
        seen[0] += 1
        if seen[0] == most:
            sys.stdout.flush()
            os._exit(0)

    if most and kind == "steps":
        register_optimizer_step_post_hook(count)
    elif most:
        plain = torch.autograd.backward

        def backward(*args, **kwargs):
            plain(*args, **kwargs)
            count()

        torch.autograd.backward = backward
    sys.path[0] = os.path.dirname(os.path.abspath(entry))
    runpy.run_path(entry, run_name="__main__")


if __name__ == "__main__":
    main()
