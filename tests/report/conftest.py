"""Makes ``samples`` importable, and golden files comparable and renewable."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from autodetach import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compares with tests/report/golden/NAME; RENEW_GOLDEN=1 writes it instead."""

    def compare(name: str, text: str) -> None:
        scrubbed = text.replace(f'"{__version__}"', '"VERSION"')
        file = HERE / "golden" / name
        if os.environ.get("RENEW_GOLDEN"):
            file.write_bytes(scrubbed.encode())
        assert scrubbed == file.read_bytes().decode()

    return compare
