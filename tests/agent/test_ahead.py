"""The program's imports of installed packages: which are made ahead, and when they are not."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

from autodetach.agent import serve

PACKAGES = {
    "quiet/__init__.py": "import os\nos.environ['COUNT'] = str(int(os.environ.get('COUNT', 0)) + 1)\n",
    "quiet/part.py": "from torch.autograd import grad\ndef slope(t): return grad((t * t).sum(), t)[0]\n",
    "draws.py": "import random\nVALUE = random.random()\n",
    "draws_torch.py": "import torch\nVALUE = torch.rand(2)\n",
    "stands.py": "import os\nVALUE = os.path.abspath('x')\n",
    "threaded.py": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n",
    "opens.py": "FILE = open(__file__)\n",
    "leaves.py": "import tempfile\nPLACE = tempfile.mkdtemp()\n",
    "asks_cuda.py": "import torch\nVALUE = torch.cuda.is_available()\n",
    "keeps_cuda.py": "from torch.cuda import is_available\n",
    "makes_graph.py": "import torch\nVALUE = torch.ones(2, requires_grad=True).exp()\n",
    "trains.py": "import torch\nw = torch.nn.Parameter(torch.ones(2))\no = torch.optim.SGD([w], 0.1)\no.zero_grad()\n"
    "w.exp().sum().backward()\no.step()\n",
    "takes_project.py": "import helper\nVALUE = helper.VALUE\n",
    "fails.py": "raise ValueError('at import')\n",
    "exits.py": "import sys\nsys.exit(3)\n",
    "crashes.py": "import os\nos.abort()\n",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    write_files(folder, PACKAGES)
    return folder


def write_files(folder: Path, files) -> None:
    for name, content in ({"main.py": files} if isinstance(files, str) else files).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def found(folder: Path, files, installed: Path, entry="main.py", **more):
    """What would be imported ahead: module names, in order."""
    write_files(folder, files)
    sys.path.insert(0, str(installed))
    try:
        program = {"root": str(folder), "entry": entry, "cwd": str(folder), **more}
        return [name for name, _, _ in _ahead().imports(program)[1]]
    finally:
        sys.path.remove(str(installed))


def _ahead(name="ahead"):
    import importlib

    if serve.PACKAGE not in sys.modules:
        serve.load_package()
    return importlib.import_module(f"{serve.PACKAGE}.{name}")


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ('"""Doc."""\nfrom __future__ import annotations\nimport os\nimport quiet.part as p\nimport draws\n',
         ["quiet.part", "draws"]),
        ("import quiet\nimport os\nos.environ['X'] = '1'\nimport draws\n", ["quiet"]),
        ("LEVEL = 3\nNAMES = ['a', -1]\ndef f(): pass\nclass C: pass\nimport quiet\n", ["quiet"]),
        ("@decorated\ndef f(): pass\nimport quiet\n", []),
        ("try:\n    import missing\nexcept ImportError:\n    missing = None\nimport quiet\n", ["quiet"]),
        ("import missing\nimport quiet\n", []),
        ("import sys\nsys.path.insert(0, 'x')\nimport quiet\n", []),
        ({"main.py": "import helper\nimport draws\n", "helper.py": "import quiet\nVALUE = 1\n"}, ["quiet", "draws"]),
        ({"main.py": "import helper\nimport draws\n", "helper.py": "import quiet\nsetup()\n"}, ["quiet"]),
        ({"main.py": "import draws\nimport quiet\n", "draws.py": "X = 1\n"}, ["quiet"]),
        ({"main.py": "from lib import nets\nimport draws\n", "lib/__init__.py": "from . import data\n",
          "lib/data.py": "import quiet\n", "lib/nets.py": "from .data import quiet\nimport leaves\n"},
         ["quiet", "leaves", "draws"]),
        ("import quiet\nthis is no Python\n", []),
        ("if TYPE_CHECKING:\n    import draws\nimport quiet\n", ["quiet"]),
        ("if x:\n    import draws\nimport quiet\n", []),
    ],
)  # fmt: skip
def test_what_stands_before_all_else(tmp_path, installed, files, names):
    assert found(tmp_path, files, installed) == names


def test_a_module_is_read_with_its_packages(tmp_path, installed):
    files = {"lib/__init__.py": "import draws\n", "lib/train.py": "import quiet\n"}
    assert found(tmp_path, files, installed, entry="lib.train", module=True) == ["draws", "quiet"]


def made(folder: Path, files, installed: Path) -> str:
    """What became of the imports ahead in a fork of their own: empty, or why not."""
    write_files(folder, files)
    temp = folder / "temp"
    temp.mkdir()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            sys.path.append(str(installed))
            os.environ["TMPDIR"] = tempfile.tempdir = str(temp)
            _ahead("dynamo").install()
            _ahead("hooks").prepare()
            try:
                _ahead().make({"root": str(folder), "entry": "main.py", "cwd": str(folder), "argv": ["a"]})
            except BaseException as error:
                os.write(writer, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    with os.fdopen(reader) as pipe:
        return pipe.read()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("quiet", ""),
        ("quiet.part", ""),
        ("draws", "Different: an import changed random numbers"),
        ("draws_torch", "Different: an import changed random numbers"),
        ("stands", "Different: an import asked for its folder"),
        ("threaded", "Different: an import changed threads"),
        ("opens", "Different: an import changed open files"),
        ("leaves", "Different: an import changed temporary files"),
        ("asks_cuda", "Different: an import asked for CUDA"),
        ("keeps_cuda", "Different: keeps_cuda keeps a question to CUDA for later"),
        ("makes_graph", "Different: an import changed the graph"),
        ("trains", "Different: an import changed the graph"),
        ("takes_project", "Different: helper belongs to the project"),
        ("fails", "ValueError: at import"),
        ("exits", "SystemExit: 3"),
    ],
)
def test_what_every_run_must_see_itself_is_not_imported_ahead(tmp_path, installed, name, why):
    assert made(tmp_path, {"main.py": f"import {name}\n", "helper.py": "VALUE = 1\n"}, installed) == why


@pytest.fixture
def served(tmp_path, installed, told_server):
    """Runs a program twice under a server that was told of it before."""

    def call(program: str):
        project = tmp_path / "project"
        write_files(project, {"main.py": program})
        plan = {"program": {"root": str(project), "entry": "main.py", "cwd": str(project), "argv": []}}
        agent = told_server(json.dumps(plan), PYTHONPATH=str(installed), PYTHONDONTWRITEBYTECODE="1")
        assert agent.ready["ready"]
        return [agent.wait(agent.start(project, entry="main.py", argv=[])) for _ in range(2)]

    return call


def test_an_import_is_made_once_and_what_it_kept_is_recorded(served):
    program = (
        "import quiet\nfrom quiet.part import slope\nimport torch, os, sys\n"
        "print(os.environ['COUNT'], slope(torch.ones(2, requires_grad=True)).tolist(), sys.argv, __name__)\n"
        "os.environ['COUNT'] = '7'\n"
    )
    for ran in served(program):
        assert ran.seen == (0, "1 [2.0, 2.0] ['main.py'] __main__\n", "")
        assert [event["call"] for event in ran.named("backward")] == ["grad"]
        assert ran.named("backward")[0]["site"]


def test_an_import_that_crashes_does_so_in_the_run(served):
    for ran in served("import crashes\n"):
        assert ran.status == -6
