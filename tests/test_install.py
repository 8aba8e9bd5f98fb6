"""An installation that has no torch of its own repairs a project whose environment has it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import site
import subprocess
import venv
from pathlib import Path

import pytest

import autodetach

CARRIED = """\
import torch

torch.manual_seed(0)
cell = torch.nn.RNNCell(2, 3)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
state = torch.zeros(1, 3)
for step in range(20):
    x = torch.randn(1, 2)
    state = cell(x, state)
    optimizer.zero_grad()
    state.sum().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter whose environment holds autodetach with what it requires, and nothing else."""
    folder = tmp_path_factory.mktemp("tool")
    packages = folder / "packages"
    packages.mkdir()
    todo, seen = ["autodetach"], set()
    while todo:
        name = re.split(r"[^\w.-]", todo.pop())[0].lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another Python or another system
        todo += [one for one in found.requires or () if "extra ==" not in one]
        if name != "autodetach":
            for top in {Path(str(file)).parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
                (packages / top).symlink_to(found.locate_file(top))
    (packages / "autodetach").symlink_to(Path(autodetach.__file__).parent)
    return environment(folder / "environment", packages)


def environment(folder: Path, *packages: Path | str) -> Path:
    """A new environment that imports from those folders; its interpreter."""
    venv.create(folder, symlinks=True, with_pip=False)
    (place,) = folder.glob("lib/python*/site-packages")
    (place / "found.pth").write_text("".join(f"{one}\n" for one in packages))
    return folder / "bin" / "python"


def test_torch_is_the_projects_alone(without_torch: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CARRIED)
    environment(tmp_path / ".venv", *site.getsitepackages())
    clean = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [without_torch, *words], cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=300
        )

    assert "No module named 'torch'" in call("-c", "import torch").stderr
    said = call("-m", "autodetach", "fix", "-v", "train.py")
    assert said.returncode == 0, said.stderr
    assert "state.detach()" in said.stdout
    assert f"interpreter: {tmp_path / '.venv' / 'bin' / 'python'}" in said.stderr

    alone = call("-m", "autodetach", "fix", "--python", str(without_torch), "train.py")
    assert alone.returncode == 2
    assert "has no torch; name the interpreter that runs the program with --python" in alone.stderr
    assert alone.stderr.count("\n") == 1
