"""Keys that are typed before the app draws anything reach it as they are; the terminal is given back as it was."""

import termios
from pathlib import Path

from support.big_graph import chain_model
from support.terminal import app


def test_keys_typed_while_the_app_starts_reach_it(tmp_path: Path) -> None:
    model = chain_model(tmp_path / "m.onnx", 7)
    with app(model) as terminal:
        before = termios.tcgetattr(terminal.master)
        terminal.press(":theme light", "enter", "3")
        terminal.wait_for("[3 Jobs]")
        terminal.press(":the", "up")
        terminal.wait_for(":theme light")
        terminal.press("enter", "q")
        terminal.wait_for(lambda text: terminal.process.poll() is not None)
        assert termios.tcgetattr(terminal.master) == before


def test_a_command_of_ones_own_has_the_terminal_and_gives_it_back(tmp_path: Path, workspace: Path) -> None:
    config = workspace / "config" / "layerwise" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[commands.tell]\nrun = "printf \'<%s>\' {model}; read x; echo \\"got $x\\""\nkey = "ctrl+e"\n')
    model = chain_model(tmp_path / "m.onnx", 7)
    with app(model, env={"LAYERWISE_HOME": str(workspace), "XDG_CONFIG_HOME": str(workspace / "config")}) as terminal:
        terminal.wait_for("Relu")
        terminal.press("\x05")
        terminal.wait_for(f"<{model}>")
        terminal.press("word", "enter")
        terminal.wait_for("got word")
        terminal.press("enter")
        terminal.wait_for("tell: done")


def test_keys_typed_while_a_model_is_opened_reach_that_model(tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "work").mkdir()
    chain_model(tmp_path / "work" / "a.onnx", 7)
    with app(env={"LAYERWISE_HOME": str(workspace)}, cwd=tmp_path / "work") as terminal:
        terminal.wait_for("file    a.onnx")
        terminal.press("enter", ":goto 4", "enter", "space", "3")
        terminal.wait_for("[3 Jobs]")
        terminal.press("1")
        terminal.wait_for(lambda text: "1 marked" in text and "a.onnx  7 nodes" in text)
