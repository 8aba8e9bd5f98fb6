"""Repairs PyTorch programs that backward through a graph a second time, and their siblings."""

__version__ = "0.1.0"
