"""Programs rewritten for CUDA: what is inserted where, and that it can be taken out again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "corpus"
sys.path.insert(0, str(CORPUS))

import case as cases  # noqa: E402
import for_cuda  # noqa: E402
import score  # noqa: E402

HEAD = "import torch\nfrom torch import nn\n"
TOLD = 'device = torch.device("cuda")\n'
LINES = {
    "x = torch.zeros(2, 3)": ("x = torch.zeros(2, 3).cuda()", "x = torch.zeros(2, 3, device=device)"),
    "x = torch.zeros(())": ("x = torch.zeros(()).cuda()", "x = torch.zeros((), device=device)"),
    "x = torch.tensor((1.0))": ("x = torch.tensor((1.0)).cuda()", "x = torch.tensor((1.0), device=device)"),
    "x = torch.full((2,), f(1),)": ("x = torch.full((2,), f(1),).cuda()", "x = torch.full((2,), f(1), device=device,)"),
    "x = torch.rand(\n    2,  # é, (\n)": (
        "x = torch.rand(\n    2,  # é, (\n).cuda()",
        "x = torch.rand(\n    2, device=device,  # é, (\n)",
    ),
    "x = torch.tensor(['é'][0])": ("x = torch.tensor(['é'][0]).cuda()", "x = torch.tensor(['é'][0], device=device)"),
    "x = torch.randn(2, requires_grad=True)": (
        'x = torch.randn(2, requires_grad=True, device="cuda")',
        "x = torch.randn(2, requires_grad=True, device=device)",
    ),
    "x = torch.from_numpy(a).float()": (
        "x = torch.from_numpy(a).cuda().float()",
        "x = torch.from_numpy(a).to(device).float()",
    ),
    "y = torch.arange(3).numpy()": (
        "y = torch.arange(3).cuda().cpu().numpy()",
        "y = torch.arange(3, device=device).cpu().numpy()",
    ),
    "g = torch.Generator()": ('g = torch.Generator(device="cuda")', "g = torch.Generator(device=device)"),
    "x = torch.rand(2, generator=g)": (
        'x = torch.rand(2, generator=g, device="cuda")',
        "x = torch.rand(2, generator=g, device=device)",
    ),
    "d = DataLoader(s, generator=torch.Generator())\nx = torch.rand(2, generator=g)": (
        "d = DataLoader(s, generator=torch.Generator())\nx = torch.rand(2, generator=g).cuda()",
        "d = DataLoader(s, generator=torch.Generator())\nx = torch.rand(2, generator=g).to(device)",
    ),
    "n = nn.Sequential(nn.Linear(2, 2), nn.ReLU())": (
        "n = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).cuda()",
        "n = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).to(device)",
    ),
    "n = [Net() for _ in range(2)]": (
        "n = [Net().cuda() for _ in range(2)]",
        "n = [Net().to(device) for _ in range(2)]",
    ),
    "y = nn.functional.relu(x)\nz = torch.stack([y])": None,
    "s = f'{torch.zeros(2)}'": None,
}
MODULE = """
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter({})
        self.inner = nn.Linear(2, 2)

class Net(Base):
    pass
"""
PARAMETER = ("torch.ones(2)", "torch.ones(2).cuda()", "torch.ones(2, device=device)")


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("style", for_cuda.STYLES)
def test_what_is_inserted(line, style):
    before = f"{HEAD}{MODULE.format(PARAMETER[0])}{line}\n".encode()
    (after,) = for_cuda.rewrite({Path("train.py"): before}, style).values()
    number = for_cuda.STYLES.index(style)
    wanted = LINES[line][number] if LINES[line] else line
    told = TOLD if style == "device" else ""
    assert after.decode() == f"{HEAD}{told}{MODULE.format(PARAMETER[1 + number])}{wanted}\n"
    assert for_cuda.undone(after) == before


def test_a_file_without_torch_by_name_uses_the_method():
    before = b"from torch import nn\r\nnet = nn.Linear(2, 2)\r\n"
    (after,) = for_cuda.rewrite({Path("train.py"): before}, "device").values()
    assert after == b"from torch import nn\r\nnet = nn.Linear(2, 2).cuda()\r\n"


def test_a_program_that_speaks_of_devices_is_refused():
    with pytest.raises(ValueError, match="already speaks of devices"):
        for_cuda.rewrite({Path("train.py"): b"x = y.cuda()\n"}, "method")


@pytest.mark.parametrize("style", for_cuda.STYLES)
def test_every_case_can_be_rewritten_and_taken_back(style, tmp_path):
    for case in cases.find(cases.FOLDERS):
        sources = (path.read_bytes() for path in case.folder.rglob("*.py"))
        if case.folder.parent.name == "own" and any(for_cuda.undone(data) != data for data in sources):
            continue  # it speaks of devices by itself
        for_cuda.write(case, style, tmp_path)
        new = cases.load(tmp_path / case.slug)
        assert new.for_cuda
        sources = b"".join(data for path, data in score.snapshot(new.before).items() if path.suffix == ".py")
        assert b"cuda" in sources, case.slug
        for folder in (new.before, *new.experts, *new.wrongs):
            for_cuda.undo(folder)
            assert score.snapshot(folder) == score.snapshot(case.folder / folder.name)


def test_a_rewritten_case_scores_as_the_original(tmp_path):
    (case,) = cases.find(cases.FOLDERS[:1], ["gradient-penalty-first-order"])
    for_cuda.write(case, "device", tmp_path / "cases")
    new = cases.load(tmp_path / "cases" / case.slug)
    (tmp_path / "work").mkdir()
    row = score.score_case(new, f"{sys.executable} -m autodetach fix", sys.executable, tmp_path / "work")
    assert row.verdict == "correct", row.why
    assert new.fails_at == "train.py:61"
