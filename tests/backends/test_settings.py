"""Settings: what is right in a file holds, what is wrong is told with its name; a project says no commands."""

import os
from pathlib import Path

import pytest
from support.other_user import needs_root

from layerwise._tool.backends.jobs.workspace.root import default_root
from layerwise._tool.backends.settings import Settings, Tolerance, UserCommand, load_settings


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own file, in a home of its own; the current folder is one without a project."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    path = tmp_path / "config" / "layerwise" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


def project(own: Path, text: str) -> Path:
    path = own.parents[2] / "pyproject.toml"
    path.write_text(text)
    return path


def test_without_files_there_are_defaults_and_no_problems(own: Path) -> None:
    found = load_settings()
    assert found.settings == Settings() and found.files == found.problems == ()


def test_all_that_can_be_set(own: Path) -> None:
    own.write_text(
        'theme = "light"\npreset = "arrows"\nmouse = false\nworkspace = "/var/tmp/lw"\n'
        '[keys]\ngraph.mark = "m"\n"graph.goto" = "ctrl+g"\n[tolerance]\natol = 1e-3\n'
        '[commands.edit]\nrun = "vi {model}"\nkey = "ctrl+e"\n'
    )
    found = load_settings()
    assert found.problems == () and found.files == (own,)
    assert found.settings == Settings(
        theme="light", preset="arrows", mouse=False, workspace="/var/tmp/lw", tolerance=Tolerance(atol=1e-3),
        keys={"graph.mark": "m", "graph.goto": "ctrl+g"}, commands={"edit": UserCommand("vi {model}", "ctrl+e")},
    )  # fmt: skip


@pytest.mark.parametrize(("line", "told"), [
    ("theme = 3", "theme: Expected `str`"), ("colour = 1", "no setting 'colour'"), ("= 3", "not valid TOML"),
    ('preset = "emacs"', "no preset 'emacs'"), ("[tolerance]\natol = -1.0", "-1.0 is no tolerance"),
    ('[commands."rm -rf"]\nrun = "x"', "is no name"), ('workspace = "here"', "no absolute path"),
    ("[commands.a]\nrun = 3", "commands: Expected `str`"), ('"\\u001b[31m" = 1', r"'\\x1b[31m'"),
])  # fmt: skip
def test_what_is_wrong_is_told_and_the_rest_holds(line: str, told: str, own: Path) -> None:
    own.write_text(f"mouse = true\n{line}\n")
    found = load_settings()
    (problem,) = found.problems
    assert str(own) in problem and (told in problem or told in problem.replace("\\\\", "\\"))
    assert found.settings == (Settings() if "TOML" in told else Settings(mouse=True))


def test_bytes_that_are_no_text_and_a_pipe_are_problems(own: Path) -> None:
    own.write_bytes(b"\xff\xfe")
    assert "not valid TOML" in load_settings().problems[0]
    own.unlink()
    os.mkfifo(own)
    assert load_settings().problems


def test_a_project_is_above_the_own_file_and_says_no_commands(own: Path) -> None:
    own.write_text('theme = "light"\n[keys]\na = "1"\nb = "2"\n')
    path = project(own, '[tool.layerwise]\ntheme = "dark"\nworkspace = "/x"\nkeys = {b = "3"}\n'
                        '[tool.layerwise.commands.a]\nrun = "touch /tmp/x"\n')  # fmt: skip
    found = load_settings()
    assert found.files == (own, path)
    assert found.settings == Settings(theme="dark", keys={"a": "1", "b": "3"})
    assert sorted(problem.split(": ")[1].split()[0] for problem in found.problems) == ["commands", "workspace"]


def test_a_project_without_our_table_is_passed_over(own: Path) -> None:
    project(own, "[tool.layerwise]\nmouse = false\n")
    for text in ("[project]\nname = 'x'\n", "not TOML ["):
        Path("pyproject.toml").write_text(text)
        assert load_settings().settings == Settings(mouse=False)


@needs_root
def test_a_project_of_another_user_does_not_count(own: Path) -> None:
    path = project(own, "[tool.layerwise]\nmouse = false\n")
    os.chown(path, 12345, 12345)
    assert load_settings().settings == Settings()


def test_the_workspace_is_the_environments_else_the_settings(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own.write_text('workspace = "/var/tmp/of-settings"\n')
    assert default_root() != Path("/var/tmp/of-settings")
    monkeypatch.delenv("LAYERWISE_HOME")
    assert default_root() == Path("/var/tmp/of-settings")
    own.write_text("broken [")
    assert default_root().name == "layerwise"
