"""Where a setting comes from, and what is said of one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from autodetach.errors import UsageError
from autodetach.settings import load, load_programs


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("")
    return tmp_path


def write(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text(text, encoding="utf-8")


def test_the_command_line_wins_over_variables_over_the_file(project):
    flags = {"script": "train.py"}
    assert load(flags, {}, project).timeout == 300
    write(project, "[tool.autodetach]\ntimeout = 20\nsteps = 4\ndevice = 'cpu'\n")
    variables = {"AUTODETACH_TIMEOUT": "30", "AUTODETACH_STEPS": "5"}
    settings = load(flags | {"timeout": "40"}, variables, project)
    assert (settings.timeout, settings.steps, settings.device) == (40, 5, "cpu")


def test_a_flag_can_be_taken_back(project):
    write(project, "[tool.autodetach]\nallow-network = true\n")
    assert load({"script": "train.py"}, {}, project).allow_network
    assert not load({"script": "train.py", "allow_network": False}, {}, project).allow_network
    assert not load({"script": "train.py"}, {"AUTODETACH_ALLOW_NETWORK": "no"}, project).allow_network


def test_the_nearest_pyproject_with_a_table_counts(project):
    write(project, "[tool.autodetach]\nsteps = 4\npython = '.venv/bin/python'\n")
    inner = project / "src" / "deep"
    inner.mkdir(parents=True)
    write(project / "src", "[project]\nname = 'x'\n")
    settings = load({"module": "train"}, {}, inner)
    assert settings.steps == 4
    assert settings.python == project / ".venv/bin/python"
    assert settings.cwd == inner


def test_an_interpreter_that_is_a_link_stays_one(project):
    (project / "python").symlink_to("/usr/bin/env")
    assert load({"script": "train.py", "python": "python"}, {}, project).python == project / "python"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            "[tool.autodetach]\ntimout = 3\n",
            "unknown key 'timout' in [tool.autodetach]; did you mean 'timeout'?",
        ),
        ("[tool.autodetach]\noutput-formt = 'json'\n", "did you mean 'output-format'?"),
        ("[tool.autodetach]\nzzz = 3\n", "unknown key 'zzz' in [tool.autodetach]"),
        ("[tool.autodetach]\ntimeout = '3'\n", "timeout must be a number of seconds above 0, not '3'"),
        ("[tool.autodetach]\ntimeout = true\n", "timeout must be a number of seconds above 0, not True"),
        ("[tool.autodetach]\nmax-memory = 'much'\n", "max-memory must be a size in bytes above 0, such as 512M or 8G"),
        ("[tool.autodetach]\nmax-scratch = 0\n", "max-scratch must be a size in bytes above 0"),
        ("[tool.autodetach]\nmax-processes = 0\n", "max-processes must be a whole number of at least 1, not 0"),
        ("[tool.autodetach]\nmax-cpu = -1\n", "max-cpu must be a number of seconds above 0, not -1"),
        ("[tool.autodetach]\nmax-outputs = 1\n", "did you mean 'max-output'?"),
        ("[tool.autodetach]\ncheck = 1\n", "check must be true or false, not 1"),
        ("[tool.autodetach]\nenv = 'HF_TOKEN'\n", "env must be a list of names, not 'HF_TOKEN'"),
        ("[tool.autodetach]\nenv = [1]\n", "env must be a list of names"),
        ("[tool.autodetach]\nscript = 'train.py'\n", "script belongs into [[tool.autodetach.programs]]"),
        ("[tool]\nautodetach = 3\n", "tool.autodetach must be a table"),
        ("[tool.autodetach\n", "cannot be read"),
        ("[tool.autodetach]\nprograms = 3\n", "programs must be a list of tables"),
        ("[[tool.autodetach.programs]]\nscrpt = 'x'\n", "did you mean 'script'?"),
    ],
)
def test_a_wrong_file_is_one_clear_line(project, table, said):
    write(project, table)
    with pytest.raises(UsageError) as raised:
        load({"script": "train.py"}, {}, project)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"AUTODETACH_TIMOUT": "3"}, "AUTODETACH_TIMOUT is no setting; did you mean AUTODETACH_TIMEOUT?"),
        ({"AUTODETACH_STEPS": "x"}, "AUTODETACH_STEPS must be a whole number of at least 3, not 'x'"),
        ({"AUTODETACH_CHECK": "perhaps"}, "AUTODETACH_CHECK must be true or false, not 'perhaps'"),
        ({"AUTODETACH_ENV": "'A"}, 'AUTODETACH_ENV: "\'A" cannot be split'),
    ],
)
def test_a_wrong_variable_is_one_clear_line(project, variables, said):
    with pytest.raises(UsageError) as raised:
        load({"script": "train.py"}, variables, project)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("written", "bytes"),
    [("1000", 1000), ("512M", 512 << 20), ("8g", 8 << 30), ("1.5 GiB", 3 << 29), ("2TB", 2 << 40), ("64kB", 64 << 10)],
)
def test_sizes(project, written, bytes):
    assert load({"script": "train.py", "max_memory": written}, {}, project).max_memory == bytes
    assert load({"script": "train.py"}, {"AUTODETACH_MAX_SCRATCH": written}, project).max_scratch == bytes
    write(project, f"[tool.autodetach]\nmax-output = '{written}'\n")
    assert load({"script": "train.py"}, {}, project).max_output == bytes


@pytest.mark.parametrize("written", ["", "0", "0.2", "-1", "8X", "G", "1e9", "8 G B", "nan", "inf"])
def test_what_is_no_size(project, written):
    with pytest.raises(UsageError, match="--max-memory must be a size"):
        load({"script": "train.py", "max_memory": written}, {}, project)


def test_variables_hold_lists(project):
    variables = {"AUTODETACH_ENV": "A 'B C'", "AUTODETACH_QUIET": ""}
    settings = load({"script": "train.py"}, variables, project)
    assert settings.env == ("A", "B C")
    assert not settings.quiet


def test_the_programs_of_a_project(project):
    write(
        project,
        """
        [tool.autodetach]
        timeout = 20
        steps = 4
        [[tool.autodetach.programs]]
        script = "train.py"
        args = ["--epochs", "1"]
        env = ["HF_TOKEN"]
        timeout = 60
        [[tool.autodetach.programs]]
        module = "project.train"
        """,
    )
    inner = project / "src"
    inner.mkdir()
    first, second = load_programs({"steps": "7"}, {}, inner)
    assert (first.script, first.args, first.cwd) == (project / "train.py", ("--epochs", "1"), project)
    assert (first.env, first.timeout, first.steps) == (("HF_TOKEN",), 60, 7)
    assert (second.module, second.timeout, second.steps) == ("project.train", 20, 7)


def test_no_programs_is_an_error(project):
    with pytest.raises(UsageError, match="no programs are listed"):
        load_programs({}, {}, project)
