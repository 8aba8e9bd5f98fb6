"""The pages keep up with the code."""

from __future__ import annotations

import re
from pathlib import Path

from autodetach import cli, errors
from autodetach.settings import FORMATS

ROOT = Path(__file__).parents[2]


def test_every_error_is_explained():
    slugs = {one.slug for one in errors.AutodetachError.__subclasses__()} | {"internal"}
    sections = set(re.findall(r"^## (\S+)$", (ROOT / "docs/errors.md").read_text(encoding="utf-8"), re.M))
    assert sections == slugs


def test_every_option_has_its_row(run):
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    options = {word for command in ("fix", "explain") for word in _options(run(command, "--help").stdout)}
    documented = set(re.findall(r"^\| `(--[a-z-]+)", page, re.M))
    assert documented == options - {"--help", "--verbose", "--quiet", "--interactive"}
    assert all(f"`{name}`" in page for name in FORMATS)


def _options(page: str) -> list[str]:
    return [word for word in re.findall(r"^  (?:-\w, )?(--[a-z-]+)", page, re.M) if not word.startswith("--no-")]


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists() or target == "docs/security-model.md", (page.name, target)


def test_commands_are_documented(run):
    shown = run("--help").stdout
    commands = re.findall(r"^  (\w+) {2,}\S", shown.split("Commands:")[1].split("Examples:")[0], re.M)
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    assert commands
    assert all(f"autodetach {command} " in page for command in commands)
    assert cli.app.info.name == "autodetach"
