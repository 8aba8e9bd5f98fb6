"""From the command line to the patch, on programs of the corpus: what is printed, the exit status, the files."""

from __future__ import annotations

import subprocess

import pytest


@pytest.fixture
def project(tmp_path, case):
    """A case's ``before/`` in a folder of the user's, and what it holds."""

    def make(slug, folder="work", git=False):
        found = case(slug)
        place = tmp_path / folder
        for name, content in found.before.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
        if git:
            for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "start"]):
                subprocess.run(
                    ["git", "-c", "user.name=T", "-c", "user.email=t@example.com", *words], cwd=place, check=True
                )
        return place, found

    return make


def contents(folder):
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and ".git" not in p.parts
    }


def lines(data):
    """All but the empty ones: where an empty line goes is a matter of taste."""
    return [line for line in data.splitlines() if line.strip()]


def applied(folder, diff):
    """What ``git apply`` makes of the folder."""
    patch = diff.encode("utf-8", "surrogateescape")
    subprocess.run(["git", "apply", "--whitespace=nowarn"], input=patch, cwd=folder, check=True)
    return contents(folder)


ADMM = """\
--- a/train.py
+++ b/train.py
@@ -88,8 +88,8 @@
             jobs.put((out + multiplier).detach())
             cleaned = results.get().requires_grad_()
{blank}
-        aux = (SIGMA * cleaned + RHO * (out + multiplier)) / (SIGMA + RHO)
-        multiplier = multiplier + out - aux
+        aux = ((SIGMA * cleaned + RHO * (out + multiplier)) / (SIGMA + RHO)).detach()
+        multiplier = (multiplier + out - aux).detach()
{blank}
         if step % 10 == 0:
             error = F.mse_loss(out.detach(), scene)
""".replace("{blank}", " ")


def test_both_stores_are_cut_then_applied_then_there_is_nothing_to_repair(project, in_a_process, command):
    """The first in a process of its own, under the isolation that the machine offers."""
    folder, _ = project("admm-denoiser-target", git=True)
    before = contents(folder)
    said = in_a_process(folder, "fix", "train.py")
    assert (said.status, said.stdout) == (0, ADMM)
    assert "carried-state" in said.stderr and "also tried:" in said.stderr
    assert "the graph grows for ever" in said.stderr or "still" in said.stderr  # why the smaller patch fell
    assert "\x1b" not in said.stderr and "Traceback" not in said.stderr
    assert contents(folder) == before

    done = command(folder, "fix", "--apply", "-q", "train.py")
    assert (done.status, done.stdout, done.stderr) == (0, ADMM, "")
    after = contents(folder)
    assert {n for n in before if before[n] != after[n]} == {"train.py"} and before.keys() == after.keys()
    assert subprocess.run(["git", "diff", "--stat"], cwd=folder, capture_output=True, text=True).stdout.count("|") == 1

    clean = command(folder, "fix", "--check", "train.py")
    assert (clean.status, clean.stdout) == (0, "")
    assert "nothing to repair" in clean.stderr


def test_only_the_forward_passes_leave_the_no_grad_block(project, command, case):
    folder, found = project("mutual-teaching-no-grad")
    said = command(folder, "fix", found.entry, *(["--", *found.args] if found.args else []))
    assert said.status == 0 and "grad-mode-off" in said.stderr
    removed = [line[1:].strip() for line in said.stdout.splitlines() if line.startswith("-") and line[:3] != "---"]
    added = [line[1:].strip() for line in said.stdout.splitlines() if line.startswith("+") and line[:3] != "+++"]
    assert contents(folder) == found.before
    new, wanted = applied(folder, said.stdout), found.files("after")
    assert {n: lines(text) for n, text in new.items()} == {n: lines(text) for n, text in wanted.items()}
    assert sorted(removed) == sorted(added)  # statements move, nothing else changes


def test_where_no_patch_keeps_the_meaning_there_is_none(project, command):
    folder, found = project("numpy-metric-as-loss")
    said = command(folder, "fix", found.entry)
    assert (said.status, said.stdout) == (1, "")
    assert "why: not-differentiable" in said.stderr and "the ways out" in said.stderr
    assert command(folder, "fix", "--check", found.entry).status == 1
    assert contents(folder) == found.before


def test_tabs_carriage_returns_blanks_and_accents(project, command):
    folder, found = project("targets-requires-grad-tabs", "mon été à moi")
    said = command(folder, "fix", found.entry)
    assert said.status == 0, said.stderr
    assert contents(folder) == found.before
    assert said.stdout.startswith('--- "a/\\303\\251talonnage \\303\\251t\\303\\251/donn\\303\\251es.py"\n')
    changed = [
        line for line in said.stdout.splitlines(keepends=True) if line[0] in "+-" and line[:3] not in ("+++", "---")
    ]
    assert len(changed) == 2 and all(line.endswith("\r\n") and line[1] == "\t" for line in changed)
    applied(folder, said.stdout)
    assert command(folder, "fix", "--check", found.entry).status == 0


def test_a_program_that_never_ends(project, command):
    folder, found = project("td-target-block-swallows-prediction")
    said = command(folder, "fix", "-q", found.entry)
    assert (said.status, said.stderr) == (0, "")
    assert said.stdout.startswith("--- a/")
    assert contents(folder) == found.before
    applied(folder, said.stdout)


def test_a_program_that_raises_in_a_worker_process(project, command):
    """Its parent waits for ever."""
    folder, found = project("federated-worker-raises")
    said = command(folder, "fix", "--timeout", "60", found.entry)
    assert said.status == 0, said.stderr
    assert "client.py:24" in said.stderr
    assert said.stdout.startswith("--- a/client.py\n+++ b/client.py\n") or said.stdout.startswith("--- a/net.py\n")
    assert contents(folder) == found.before


def test_a_module_of_a_package_with_arguments(analyse):
    files = {
        "pyproject.toml": "[project]\nname = 'p'\nversion = '1'\n",
        "app/__init__.py": "",
        "app/net.py": "import torch\n\ndef advance(cell, x, h):\n    return cell(x, h)\n",
        "app/train.py": """\
            import argparse
            import torch
            from .net import advance

            parser = argparse.ArgumentParser()
            parser.add_argument("--steps", type=int, required=True)
            args = parser.parse_args()
            cell = torch.nn.GRUCell(2, 3)
            opt = torch.optim.SGD(cell.parameters(), lr=0.1)
            h = torch.zeros(1, 3)
            for _ in range(args.steps):
                h = advance(cell, torch.ones(1, 2), h)
                opt.zero_grad()
                h.pow(2).sum().backward()
                opt.step()
            """,
    }
    outcome = analyse(files, "--steps", "20", module="app.train")
    assert outcome.status == "repaired" and outcome.diff.count("\n+") == 2
    assert "h.detach()" in outcome.diff
    assert outcome.steps_proved >= 3


def test_verify_and_explain_by_the_command_line(project, command, tmp_path):
    folder, found = project("char-lm-hidden-tuple")
    for name, status in (("after", 0), ("wrong-reset", 1)):
        (tmp_path / "colleague.diff").write_text(found.diff(name))
        said = command(folder, "verify", found.entry, "--patch", str(tmp_path / "colleague.diff"))
        assert said.status == status, said.stdout
        assert ("[safe]" if status == 0 else "[rejected]") in said.stdout
    said = command(folder, "explain", found.entry)
    assert said.status == 1 and "why: carried-state" in said.stdout and "+++" not in said.stdout
    assert contents(folder) == found.before
