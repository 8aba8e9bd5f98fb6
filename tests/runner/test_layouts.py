"""Projects as people lay them out: the module to blame is found and edited wherever it lies."""

from __future__ import annotations

import subprocess
import sys
import sysconfig

import pytest

from autodetach.progress import Silent
from autodetach.settings import Settings
from autodetach.source.diff import unified_diff

NET = "import torch\n\ndef advance(cell, x, h):\n    return cell(x, h)\n"
TRAIN = """\
import torch
{imports}

cell = torch.nn.GRUCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
h = torch.zeros(1, 3)
for _ in range(20):
    h = advance(cell, torch.ones(1, 2), h)
    opt.zero_grad()
    h.pow(2).sum().backward()
    opt.step()
"""
ABOVE = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'src'))\n"
MODULE_PATCH = unified_diff(
    {"src/app/net.py": NET.encode()}, {"src/app/net.py": NET.replace("(x, h)\n", "(x, h.detach())\n").encode()}
)
LAYOUTS = {
    "src, from a script beside it": (
        {
            "pyproject.toml": "",
            "src/app/__init__.py": "",
            "src/app/net.py": NET,
            "scripts/train.py": ABOVE + TRAIN.format(imports="from app.net import advance"),
        },
        {"entry": "scripts/train.py"},
    ),
    "a name space without __init__": (
        {
            "pyproject.toml": "",
            "lab/deep/net.py": NET,
            "train.py": TRAIN.format(imports="from lab.deep.net import advance"),
        },
        {},
    ),
    "a module of a name space": (
        {
            "pyproject.toml": "",
            "lab/deep/net.py": NET,
            "lab/train.py": TRAIN.format(imports="from .deep.net import advance"),
        },
        {"module": "lab.train"},
    ),
    "a name space in two places": (
        {
            "pyproject.toml": "",
            "src/lab/net.py": NET,
            "lab/other.py": "value = 1\n",
            "train.py": "import sys\nsys.path.insert(0, 'src')\n"
            + TRAIN.format(imports="from lab.net import advance\nfrom lab.other import value"),
        },
        {},
    ),
    "a package that runs itself": (
        {
            "setup.py": "",
            "app/__init__.py": "from .net import advance\n",
            "app/net.py": NET,
            "app/__main__.py": TRAIN.format(imports="from app import advance"),
        },
        {"module": "app"},
    ),
    "a link to the package": (
        {"pyproject.toml": "", "code/app/net.py": NET, "train.py": TRAIN.format(imports="from app.net import advance")},
        {"links": {"app": "code/app"}},
    ),
}


@pytest.fixture
def fix(shared, tmp_path):
    """``autodetach fix`` on files and links in a folder of their own."""

    def call(files, entry="train.py", module=None, links=None):
        from autodetach import pipeline

        folder = tmp_path / "project"
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        for name, aim in (links or {}).items():
            (folder / name).symlink_to(aim)
        script = None if module else folder / entry
        return pipeline.fix(Settings(cwd=folder, script=script, module=module), Silent())

    return call


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout(fix, name):
    files, how = LAYOUTS[name]
    outcome = fix(files, **how)
    assert outcome.status == "repaired", outcome.detail
    assert outcome.diff.count("\n+") == 2 and ".detach()" in outcome.diff


def test_an_editable_install_in_the_programs_own_environment(in_a_process, tmp_path):
    """Its ``.pth`` names the original, which a run must not import."""
    project, environment = tmp_path / "project", tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    [packages] = environment.glob("lib/python*/site-packages")
    (packages / "all.pth").write_text(f"{sysconfig.get_path('purelib')}\n{project / 'src'}\n")
    (project / "src/app").mkdir(parents=True)
    (project / "pyproject.toml").touch()
    (project / "src/app/net.py").write_text(NET)
    (project / "train.py").write_text(TRAIN.format(imports="from app.net import advance"))
    said = in_a_process(project, "fix", "--python", str(environment), "train.py")
    assert said.status == 0, said.stderr
    assert said.stdout.count("\n+") == 2 and ".detach()" in said.stdout
    # a patch of the module itself is what runs
    patch = said.stdout if "net.py" in said.stdout else MODULE_PATCH
    (tmp_path / "patch").write_text(patch)
    verified = in_a_process(
        project, "verify", "--python", str(environment), "--patch", str(tmp_path / "patch"), "train.py"
    )
    assert verified.status == 0, verified.stdout
