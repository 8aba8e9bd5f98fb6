import numpy as np


def r_squared(predicted, wanted):
    """Coefficient of determination of two arrays of the same shape."""
    residual = np.square(wanted - predicted).sum()
    spread = np.square(wanted - wanted.mean()).sum()
    return 1.0 - residual / spread


class Report:
    """Collects predictions batch by batch."""

    def __init__(self):
        self.predicted, self.wanted = [], []

    def add(self, predicted, wanted):
        self.predicted.append(predicted.cpu().numpy())
        self.wanted.append(wanted.cpu().numpy())

    def score(self):
        return r_squared(np.concatenate(self.predicted), np.concatenate(self.wanted))
