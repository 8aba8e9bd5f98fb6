from dataclasses import dataclass

import torch


@dataclass
class Belief:
    """What the tracker thinks of the target after the last frame."""

    mean: torch.Tensor
    log_var: torch.Tensor

    @classmethod
    def unknown(cls, dims):
        return cls(torch.zeros(dims), torch.zeros(dims))

    def get(self):
        return torch.cat([self.mean, self.log_var])

    def set(self, mean, log_var):
        self.mean = mean
        self.log_var = log_var
