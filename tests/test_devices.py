"""On what a program runs, what its report says of that, and what happens where the device is not there."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from autodetach.devices import device_of, insist_on_device
from autodetach.diagnosis.recording import Backward, Recording, Step
from autodetach.errors import RefusedError
from autodetach.model import Device, Failure, FailureKind, Outcome, Status
from autodetach.report.interface import make
from autodetach.report.words import device, proof
from autodetach.runner.readiness import ServerInfo
from autodetach.settings import Settings
from autodetach.source.diff import unified_diff

HEAD = "import sys\nimport torch\nfrom torch import nn\n"
BODY = """\
torch.manual_seed(0)
net = nn.GRU(3, 4).to(device)
optimizer = torch.optim.Adam(net.parameters())
state = torch.zeros(1, 2, 4, device=device)
for step in range(20):
    out, state = net(torch.randn(5, 2, 3).to(device), state{detach})
    optimizer.zero_grad()
    out.mean().backward()
    optimizer.step()
    print(step, file=sys.stderr)
"""
FAILING, RIGHT = BODY.format(detach=""), BODY.format(detach=".detach()")
GUARDS = {
    "none": "device = torch.device('cuda:0')\n",
    "assertion": "assert torch.cuda.is_available(), 'a GPU is needed'\ndevice = 'cuda'\n",
    "exit with a word": "if not torch.cuda.is_available():\n    sys.exit('a GPU is needed')\ndevice = 'cuda'\n",
    "silent exit": "if torch.cuda.device_count() < 1:\n    sys.exit()\ndevice = 'cuda'\n",
    "name": "device = 'cuda'\nprint(torch.cuda.get_device_name(0))\n",
    "default": "torch.set_default_device('cuda')\ndevice = None\n",
    "number": "device = 0\n",
}
ON_THE_CPU: list[list[str]] = []


def changed_lines(outcome):
    return [line for line in outcome.diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]


@pytest.fixture
def as_on_the_cpu(analyse):
    """The lines that change where the same program is written for the CPU; none of them speaks of the device anew."""
    if not ON_THE_CPU:
        ON_THE_CPU.append(changed_lines(analyse(HEAD + "device = 'cpu'\n" + FAILING, device="cpu")))
    (lines,) = ON_THE_CPU
    assert any("detach()" in line for line in lines)
    words = {sign: sum(line.count("device") for line in lines if line[0] == sign) for sign in "+-"}
    assert words["+"] == words["-"]
    return lines


WITHOUT_CUDA = pytest.mark.skipif("__import__('torch').cuda.is_available()")


@WITHOUT_CUDA
@pytest.mark.parametrize(("guard", "device"), [*((guard, "auto") for guard in GUARDS), ("none", "cpu")])
def test_a_program_for_cuda_is_repaired_on_the_cpu_as_it_stands(analyse, as_on_the_cpu, guard, device):
    outcome = analyse(HEAD + GUARDS[guard] + FAILING, device=device)
    assert outcome.status is Status.REPAIRED
    assert changed_lines(outcome) == as_on_the_cpu
    assert outcome.device == Device("cpu", asked_for="cuda")
    assert proof(outcome).startswith("proved on cpu (the program asks for cuda) for ")
    assert "proved on cpu (the program asks for cuda)" in make("text").render(outcome)
    said = json.loads(make("json").render(outcome))["outcomes"][0]["proof"]["device"]
    assert said == {"kind": "cpu", "name": "", "asked_for": "cuda"}


def test_a_program_that_takes_what_is_there_is_left_alone(analyse):
    source = HEAD + "device = 'cuda' if torch.cuda.is_available() else 'cpu'\n" + FAILING
    outcome = analyse(source, device="cpu")
    assert outcome.status is Status.REPAIRED
    assert outcome.device == Device()
    assert proof(outcome).startswith("proved on cpu for ")


@WITHOUT_CUDA
def test_what_trains_on_cuda_is_clean_and_the_report_says_where_it_ran(analyse):
    outcome = analyse(HEAD + GUARDS["none"] + RIGHT)
    assert outcome.status is Status.CLEAN
    assert outcome.notes == ("the program asks for cuda, which is not here: it was run on the cpu",)
    assert outcome.detail == "20 steps and 20 backward passes"


@WITHOUT_CUDA
@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("raise KeyError('mine')\n", "KeyError: 'mine'"),
        ("torch.cuda.CUDAGraph()\n", "Tried to instantiate dummy base class"),
    ],
)
def test_what_fails_there_too_fails_in_its_first_words(analyse, last, said):
    """What is reported is the program as it is; a note tells how it went on the CPU."""
    outcome = analyse(HEAD + "torch.zeros(1).cuda()\n" + last)
    (note,) = outcome.notes
    assert said in note and note.startswith("there is no cuda here")
    assert outcome.status is Status.FAILED_OTHERWISE
    assert "Torch not compiled with CUDA enabled" in outcome.detail or "CUDA" in outcome.detail
    assert outcome.device == Device()


def test_a_failure_that_has_nothing_to_do_with_cuda_is_not_run_again(analyse, monkeypatch):
    from autodetach.laboratory import Laboratory

    runs = []
    plain = Laboratory.observe
    monkeypatch.setattr(Laboratory, "observe", lambda self, *a, **k: runs.append(1) or plain(self, *a, **k))
    source = (
        HEAD + "torch.cuda.is_available()\nw = torch.ones(1, requires_grad=True)\n(w * 2).sum().backward()\n1 / 0\n"
    )
    assert analyse(source, device="cpu").status is Status.FAILED_OTHERWISE
    assert len(runs) == 1


@WITHOUT_CUDA
def test_explain_and_verify_are_redirected_as_well(analyse):
    source = HEAD + GUARDS["none"] + FAILING
    told = analyse(source, command="explain")
    assert told.diagnosis.cause == "carried-state"
    assert told.device.asked_for == "cuda" and any("run on the cpu" in note for note in told.notes)
    both = (HEAD + GUARDS["none"] + body for body in (FAILING, RIGHT))
    patch = unified_diff(*({"train.py": text.encode()} for text in both))
    judged = analyse(source, patch=patch)
    assert judged.trials[0].level == "safe"


@WITHOUT_CUDA
@pytest.mark.parametrize("wanted", ["cuda", "cuda:1"])
@pytest.mark.parametrize("command_line", ["fix", "explain"])
def test_cuda_that_is_not_to_be_had_is_refused_in_one_line(command, tmp_path, wanted, command_line):
    (tmp_path / "train.py").write_text(HEAD + GUARDS["none"] + FAILING)
    said = command(tmp_path, command_line, "--device", wanted, "train.py")
    assert (said.status, said.stdout) == (4, "")
    (line,) = [one for one in said.stderr.splitlines() if one.startswith("autodetach")]
    assert line.startswith(f"autodetach: error[refused]: --device {wanted} is not to be had: ")
    assert line.endswith("--device auto runs the program on the CPU where there is none")


INFO = ServerInfo("3.12", "2.13.0", (), True, "bubblewrap", (), ())


def test_one_of_several_devices_that_is_not_there(tmp_path):
    settings = Settings(script=tmp_path / "train.py", device="cuda:2")
    two = replace(INFO, cuda=("a", "b"))
    with pytest.raises(RefusedError, match="2 CUDA devices, numbered from 0"):
        insist_on_device(settings, two, Path("python"))
    insist_on_device(replace(settings, device="cuda:1"), two, Path("python"))
    insist_on_device(replace(settings, device="auto"), INFO, Path("python"))


@pytest.mark.parametrize("wanted", ["auto", "cuda"])
def test_a_gpu_that_the_isolation_hides_is_told(monkeypatch, tmp_path, wanted):
    """As where device nodes do not get into the sandbox: torch sees the GPU outside, and none inside."""
    monkeypatch.setattr("autodetach.devices.NODES", str(tmp_path / "nvidia[0-9]*"))
    settings = Settings(script=tmp_path / "train.py", device=wanted)
    outside = tmp_path / "python"
    for seen, there in (("1", True), ("0", False)):
        (tmp_path / "nvidia0").write_text("")
        outside.write_text(f"#!/bin/sh\necho {seen}\n")
        outside.chmod(0o755)
        if there:
            with pytest.raises(RefusedError, match=r"isolation \(bubblewrap\) hides this machine's GPU"):
                insist_on_device(settings, INFO, outside)
        elif wanted == "auto":
            insist_on_device(settings, INFO, outside)
    insist_on_device(replace(settings, device="cpu"), INFO, outside)
    (tmp_path / "nvidia0").unlink()
    if wanted == "auto":
        insist_on_device(settings, INFO, outside)


def test_a_torch_without_cuda_is_not_asked_again(monkeypatch, tmp_path):
    monkeypatch.setattr("autodetach.devices.NODES", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", None)
    insist_on_device(Settings(script=tmp_path), replace(INFO, built_with_cuda=False), Path("python"))


def _run(stepped=(), losses=(), failing=None, names=(), **more):
    steps = (Step(1, 0, (), (), 1, devices=tuple(stepped)),) if stepped else ()
    backwards = (Backward(1, "backward", "", 0, (), False, False, devices=tuple(losses)),) if losses else ()
    failure = Failure(FailureKind.SECOND_BACKWARD, "", (), 1, 1) if failing is not None else None
    return Recording({}, steps, backwards, failure=failure, failure_devices=frozenset(failing or ()),
                     device_names=tuple(names), **more)  # fmt: skip


GPU = ["NVIDIA H200"]
VERDICTS = {
    "all on the GPU": (["cuda"], _run(["cuda"], ["cuda"], names=GPU), "cuda (NVIDIA H200)"),
    "by hand, no optimizer": (["cuda"], _run([], ["cuda"], names=GPU), "cuda (NVIDIA H200)"),
    "weights on the GPU, loss fetched": (["cpu", "cuda"], _run(["cuda"], ["cpu"], names=GPU), "cuda (NVIDIA H200)"),
    "the failing call was on the CPU": (["cpu"], _run(["cuda"], ["cuda"], names=GPU), "cpu"),
    "the proof ran on the CPU": (["cuda"], _run(["cpu"], ["cpu"]), "cpu"),
    "all on the CPU": (["cpu"], _run(["cpu"], ["cpu"]), "cpu"),
    "redirected": (["cpu"], _run(["cpu"], ["cpu"], redirected=True), "cpu (the program asks for cuda)"),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_a_verdict_is_of_the_device_that_the_runs_show(name):
    failing, proof_run, said = VERDICTS[name]
    found = device_of(_run(failing=failing, names=GPU), proof_run)
    assert device(Outcome(Status.REPAIRED, device=found)) == said


@pytest.mark.cuda
class TestOnAGPU:
    def test_the_verdict_is_that_devices(self, in_a_process, tmp_path):
        (tmp_path / "train.py").write_text(HEAD + GUARDS["assertion"] + FAILING)
        said = in_a_process(tmp_path, "fix", "--output-format", "json", "train.py")
        assert said.status == 0, said.stderr
        (outcome,) = json.loads(said.stdout)["outcomes"]
        found = outcome["proof"]["device"]
        assert (found["kind"], found["asked_for"]) == ("cuda", "")
        assert found["name"] and f"proved on cuda ({found['name']}) for" in said.stderr
        assert outcome["patch"]["level"] == "safe"

    def test_without_it_when_told_so(self, in_a_process, tmp_path):
        (tmp_path / "train.py").write_text(HEAD + GUARDS["assertion"] + FAILING)
        said = in_a_process(tmp_path, "fix", "--device", "cpu", "train.py")
        assert said.status == 0, said.stderr
        assert "proved on cpu (the program asks for cuda) for" in said.stderr

    def test_a_program_on_the_cpu_gets_a_verdict_of_the_cpu(self, analyse):
        outcome = analyse(HEAD + "device = 'cpu'\n" + FAILING)
        assert outcome.status is Status.REPAIRED
        assert outcome.device == Device()

    def test_one_that_is_not_there(self, in_a_process, tmp_path):
        (tmp_path / "train.py").write_text(HEAD + GUARDS["none"] + FAILING)
        assert in_a_process(tmp_path, "fix", "--device", "cuda:0", "train.py").status == 0
        said = in_a_process(tmp_path, "fix", "--device", "cuda:99", "train.py")
        assert said.status == 4 and "numbered from 0" in said.stderr

    @pytest.mark.parametrize("mechanism", ["none", "bubblewrap", "landlock"])
    def test_every_isolation_lets_it_through(self, mechanism, in_a_process, tmp_path):
        from autodetach.isolation.choose import choose

        try:
            choose(mechanism)
        except RefusedError as error:
            pytest.skip(str(error))
        (tmp_path / "train.py").write_text(HEAD + GUARDS["none"] + RIGHT)
        said = in_a_process(tmp_path, "explain", "-v", "--isolation", mechanism, "train.py")
        assert said.status == 0, said.stderr
        assert "device: cuda (" in said.stdout and f"isolation: {mechanism}" in said.stdout


def test_without_a_patch_the_failing_run_alone_counts():
    assert device_of(_run(failing=["cuda"], names=GPU), None) == Device("cuda", "NVIDIA H200")
    assert device_of(_run(["cuda"], ["cuda"], names=GPU), None) == Device("cuda", "NVIDIA H200")


def test_a_device_has_no_escapes_in_its_name():
    found = device(Outcome(Status.CLEAN, device=Device("cuda", "\x1b[31mred")))
    assert "\x1b" not in found
