"""Every flag of every command can be a setting: in the file, as a variable; and the page says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import samples
import typer

from autodetach import cli
from autodetach.errors import UsageError
from autodetach.settings import load, load_programs

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
OF_ONE_CALL = {
    "program": "what is run; in [[tool.autodetach.programs]] it is script and args",
    "module": "what is run; in [[tool.autodetach.programs]]",
    "patch": "what verify judges",
    "result": "what suggest reads",
    "diff": "what suggest reads",
    "summary": "what suggest writes",
    "help": "answered at once",
    "version": "answered at once",
    "install_completion": "done at once",
    "show_completion": "answered at once",
}
VALUES = {
    "timeout": ("7", 7.0),
    "steps": ("5", 5),
    "max_processes": ("5", 5),
    "isolation": ("'none'", "none"),
    "device": ("'cpu'", "cpu"),
    "output_format": ("'json'", "json"),
    "verbose": ("2", 2),
    "jobs": ("3", 3),
    "shard": ("'2/3'", (2, 3)),
}
"""For flags that take not just anything."""


def parameters():
    group = typer.main.get_command(cli.app)
    return {(name, one.name): one for name, command in group.commands.items() for one in command.params}


EVERY = parameters()
SETTINGS = sorted({name for _, name in EVERY if name not in OF_ONE_CALL})


def written(name, parameter):
    """The setting as the file holds it, and as a variable does."""
    if name in VALUES:
        text = VALUES[name][0]
    elif parameter.secondary_opts:
        text = "true"
    elif parameter.multiple:
        text = "['json=x']"
    else:
        text = "'512'"
    return text, " ".join(re.findall(r"[^\s\[\]',]+", text))


@pytest.mark.parametrize("name", SETTINGS)
def test_a_flag_is_a_key_and_a_variable_and_the_command_line_wins(tmp_path, name):
    parameter = next(one for (_, known), one in EVERY.items() if known == name)
    (tmp_path / "train.py").write_text("")
    text, variable = written(name, parameter)
    flags = {"script": "train.py"}
    default = getattr(load(flags, {}, tmp_path), name)
    by_variable = getattr(load(flags, {f"AUTODETACH_{name.upper()}": variable}, tmp_path), name)
    key = name.replace("_", "-")
    try:
        (tmp_path / "pyproject.toml").write_text(f"[tool.autodetach]\n{key} = {text}\n")
        by_file = getattr(load(flags, {}, tmp_path), name)
    except UsageError:
        (tmp_path / "pyproject.toml").write_text(f"[tool.autodetach]\n{key} = {text.strip(chr(39))}\n")
        by_file = getattr(load(flags, {}, tmp_path), name)
    assert by_file == by_variable != default
    if name in VALUES:
        assert by_file == VALUES[name][1]
    if parameter.secondary_opts:
        no = {f"AUTODETACH_{name.upper()}": "no"}
        assert getattr(load(flags, no, tmp_path), name) is False
        assert getattr(load(flags | {name: True}, no, tmp_path), name) is True


@pytest.mark.parametrize("name", SETTINGS)
def test_a_misspelled_key_is_refused_with_the_nearest_known_one(tmp_path, name):
    (tmp_path / "train.py").write_text("")
    key = name.replace("_", "-")
    (tmp_path / "pyproject.toml").write_text(f"[tool.autodetach]\n{key}x = 1\n")
    with pytest.raises(
        UsageError, match=re.escape(f"unknown key '{key}x' in [tool.autodetach]; did you mean '{key}'?")
    ):
        load({"script": "train.py"}, {}, tmp_path)
    (tmp_path / "pyproject.toml").unlink()
    with pytest.raises(UsageError, match=f"did you mean AUTODETACH_{name.upper()}"):
        load({"script": "train.py"}, {f"AUTODETACH_{name.upper()}X": "1"}, tmp_path)


@pytest.mark.parametrize(("command", "name"), EVERY, ids=lambda word: str(word))
def test_every_flag_stands_on_the_page(command, name):
    if name in ("program", "module", "patch", "result", "help"):
        return
    flags = [one for one in EVERY[command, name].opts if one.startswith("--")]
    assert any(f"`{flag}" in PAGE or f"{flag} " in PAGE for flag in flags), flags


@pytest.mark.parametrize("command", ["fix", "explain", "verify", "ci"])
def test_a_command_takes_every_flag_that_can_change_what_it_does(command):
    """What one command knows the others know, unless it is about patches or about many programs."""
    patches = {"apply", "check", "allow_dirty", "interactive", "unsafe", "all", "steps", "leaks"}
    many = {"jobs", "shard", "write"}
    common = {name for name in SETTINGS if name not in patches | many}
    assert common <= {name for known, name in EVERY if known == command}


def test_programs_take_their_own_and_refuse_what_is_about_all(tmp_path):
    file = tmp_path / "pyproject.toml"
    file.write_text(
        "[tool.autodetach]\njobs = 4\nwrite = ['json=out.json']\n[[tool.autodetach.programs]]\nscript = 'a.py'\n"
    )
    (one,) = load_programs({"jobs": "2"}, {}, tmp_path)
    assert (one.jobs, one.write) == (2, (("json", tmp_path / "out.json"),))
    for key in ("jobs = 2", "shard = '1/2'", "write = []"):
        file.write_text(f"[[tool.autodetach.programs]]\nscript = 'a.py'\n{key}\n")
        with pytest.raises(UsageError, match=r"belongs into \[tool.autodetach\], not into"):
            load_programs({}, {}, tmp_path)


def test_ci_obeys_the_file(run, pipeline, tmp_path):
    pipeline.answer = samples.CLEAN
    (tmp_path / "pyproject.toml").write_text(
        "[tool.autodetach]\nshard = '2/2'\nwrite = ['json=out.json']\n"
        "[[tool.autodetach.programs]]\nscript = 'a.py'\n[[tool.autodetach.programs]]\nscript = 'b.py'\n"
    )
    assert run("ci").status == 0
    assert [one.program for one in pipeline.settings] == ["b.py"]
    assert (tmp_path / "out.json").exists()
    assert run("ci", "--shard", "1/2").status == 0
    assert pipeline.settings[-1].program == "a.py"
