"""How long autodetach takes, as ratios to what a user would do by hand. ``python -m benchmarks --help``."""
