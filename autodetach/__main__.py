"""``python -m autodetach``."""

from autodetach.cli import main

main()
