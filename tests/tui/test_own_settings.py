"""Keys and commands of the user's own: what may be in force, and that no name of a model reaches a shell."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.formats.toml import read_toml
from layerwise._tool.tui import workbench
from layerwise._tool.tui.commands import REGISTRY
from layerwise._tool.tui.controllers.own_commands import Subject, environment_of, prepared
from layerwise._tool.tui.controllers.settings import write_key
from layerwise._tool.tui.keys import PRESETS, put_in_force, usable, written

assert workbench.PAGES  # the registry is full


@pytest.fixture(autouse=True)
def as_declared() -> Iterator[None]:
    yield
    put_in_force({})


def test_presets_can_be_in_force() -> None:
    for keymap in PRESETS.values():
        assert usable(keymap) == (keymap, [])


def test_a_key_that_another_command_of_the_screen_keeps_is_refused() -> None:
    good, problems = usable({"graph.mark": "w", "graph.fly": "f", "graph.goto": "ctrl+g"})
    assert good == {"graph.goto": "ctrl+g"}
    assert [problem.split()[1] for problem in problems] == ["no", "graph.mark"] and "graph.weights" in problems[1]
    swapped = {"graph.mark": "w", "graph.weights": "space"}
    assert usable(swapped) == (swapped, [])


def test_a_key_may_not_begin_those_of_another_command() -> None:
    assert usable({"errors.sort": "]"})[1]
    assert usable({"errors.sort": "] s"})[1] == []


def test_keys_in_force_go_and_come_back() -> None:
    before = REGISTRY["graph.mark"].keys
    put_in_force({"graph.mark": "m"})
    assert REGISTRY["graph.mark"].key_text == "m"
    put_in_force({"graph.goto": "ctrl+g"})
    assert REGISTRY["graph.mark"].keys == before


def test_keys_are_written_as_people_do() -> None:
    assert written("/,esc,m") == "slash,escape,m"
    assert written("] e") == "right_square_bracket e"
    assert written(",") == "comma"


def test_one_line_of_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"
    write_key(path, "graph.mark", "m")
    assert read_toml(path) == {"keys": {"graph.mark": "m"}}
    path.write_text('# mine\ntheme = "dark" # dark\n\n[keys] # of mine\n"graph.goto" = "g"\n\n[tolerance]\natol = 1\n')
    write_key(path, "graph.mark", 'a"b')
    write_key(path, "graph.goto", None)
    assert read_toml(path) == {"theme": "dark", "keys": {"graph.mark": 'a"b'}, "tolerance": {"atol": 1}}
    assert path.read_text().startswith('# mine\ntheme = "dark" # dark\n\n[keys] # of mine\n')


def test_a_file_that_is_written_in_another_way_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    for text in ('keys = {a = "b"}\n', "broken [\n", 'x = """\n[keys]\n"""\n'):
        path.write_text(text)
        with pytest.raises(LayerwiseError):
            write_key(path, "graph.mark", "m")
        assert path.read_text() == text


HOSTILE = (
    "a b",
    "$(touch X)",
    "`touch X`",
    "'; touch X; '",
    '"; touch X; "',
    "-rf",
    "*",
    "a\nb",
    "\x1b[31m",
    "\\",
    "!x",
)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("form", ["{}", '"{}"', "$(printf %s {})", "`printf %s {}`"])
def test_a_name_is_one_word_whatever_is_in_it(form: str, name: str, tmp_path: Path) -> None:
    line = prepared(f"printf '<%s>' {form.format('{node}')}")
    done = subprocess.run(
        ["/bin/sh", "-c", line], env=environment_of("{node}", Subject(node=name)), cwd=tmp_path, capture_output=True,
        check=True,
    )  # fmt: skip
    assert not list(tmp_path.iterdir())
    if not form.startswith(("$", "`")):
        assert done.stdout == b"<" + os.fsencode(name) + b">"


def test_fields_that_there_are_not_and_places_where_none_is_filled_in_are_refused() -> None:
    with pytest.raises(UsageError, match="single quotes"):
        prepared("echo '{node}'")
    with pytest.raises(UsageError, match=r"no \{nodes\}"):
        prepared("echo {nodes}")
    assert prepared("echo ${HOME} it\\'s {tensor}") == 'echo ${HOME} it\\\'s "${LAYERWISE_TENSOR}"'
    with pytest.raises(LayerwiseError, match="no node here"):
        environment_of("echo {node}", Subject(tensor="t"))
    with pytest.raises(LayerwiseError, match="zero byte"):
        environment_of("echo {node}", Subject(node="a\0b"))
