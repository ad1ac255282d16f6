"""`doctor` and `where`: what is wrong is named with what mends it, whatever is broken here; never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import Done, layerwise

from layerwise._tool.backends import installed
from layerwise._tool.backends.probe import Gpu, Probe, probe
from layerwise._tool.tui.cli.doctor.engines import _FOR, graphics, installation
from layerwise._tool.tui.cli.doctor.finding import Finding, ending, report
from layerwise._tool.tui.cli.doctor.places import workspace
from layerwise._tool.tui.cli.doctor.terminal import characters, colours, tmux_clipboard

INSTALLED = str(Path(__file__).parents[3] / ".editable")


def doctor(folder: Path) -> tuple[Done, dict[str, dict[str, str]]]:
    done = layerwise("doctor", "--json", cwd=folder)
    found = json.loads(done.stdout)
    assert done.returncode == found["exit_code"] == int(bool(found["wrong"])), done.stderr
    return done, {one["name"]: one for one in found["findings"]}


def without(folder: Path, code: str) -> str:
    """A PYTHONPATH where onnxruntime is a package of this code."""
    package = folder / "without" / "onnxruntime"
    (package / "capi").mkdir(parents=True)
    (package / "__init__.py").write_text(code)
    (package / "capi" / "_pybind_state.py").touch()
    return f"{package.parent}:{INSTALLED}"


def test_all_is_well_here_and_the_text_says_the_same(tmp_path: Path) -> None:
    done = layerwise("doctor", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "nothing to mend" in done.stdout and "CPU" in done.stdout and "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(("code", "told"), [
    ("raise ImportError('libfoo.so.9: cannot open')", "libfoo.so.9: cannot open"),
    ("import os; os.abort()", "onnxruntime: the process was ended by SIGABRT"),
    ("import os; os._exit(3)", "onnxruntime: the process ended with exit code 3"),
    ("import time; time.sleep(1000)", "onnxruntime: the process did not answer within 1 s"),
])  # fmt: skip
def test_an_engine_that_breaks_is_named(code: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", without(tmp_path, code))
    found = probe(1 if "sleep" in code else 60)
    assert told == found.lost + found.onnxruntime_error
    rows = [one for one in installation(found) if one.state == "wrong"]
    assert len(rows) == 1 and told in rows[0].text and rows[0].mend


def test_without_an_engine_it_says_what_brings_one(tmp_path: Path) -> None:
    code = (
        "import sys; from layerwise._tool.backends import installed; installed.onnxruntime = lambda: None; "
        "from layerwise._tool.tui.__main__ import main; sys.exit(main(['doctor', '--json']))"
    )
    path = without(tmp_path, "raise ModuleNotFoundError('No module named onnxruntime', name='onnxruntime')")
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path,
                          capture_output=True, text=True, check=False)  # fmt: skip
    found = {one["name"]: one for one in json.loads(done.stdout)["findings"]}
    assert done.returncode == 0, done.stderr
    assert found["onnxruntime"]["state"] == "note" and "pip install" in found["onnxruntime"]["mend"]
    told = ending([Finding(**one) for one in found.values()])
    assert told == f"nothing to mend; before models can be run: {found['onnxruntime']['mend']}"


def test_what_was_found_is_broken_between_words_and_a_command_is_not() -> None:
    command = f"pip install {'x' * 40} {'y' * 40}"
    lines = [*report([Finding("Part", "layerwise-core", "wrong", "word, " * 30, command)], 80)]
    assert lines[-1].endswith(f"mend: {command}") and {len(line.split(",")[0]) for line in lines[2:-1]} == {24}
    assert max(map(len, lines[:-1])) <= 80 and len([*report([Finding("Part", "x", "ok", "word, " * 30)])]) == 2
    assert all(package.name in _FOR for package in installed.packages())


def test_an_onnxruntime_without_cuda_goes_before_the_one_with_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them would be the same folder."""
    monkeypatch.setattr(installed, "driver_cuda", lambda: (13, 0))
    monkeypatch.setattr(installed, "onnxruntime", lambda: installed.OnnxRuntime(("onnxruntime 1.31",), None, True))
    (row,) = [one for one in graphics(Probe(gpus=(H200,), onnxruntime="1.31")) if one.name == "onnxruntime"]
    removed, installs = row.mend.split(" && ")
    assert "uninstall" in removed and removed.endswith(" onnxruntime") and "[cuda13]" in installs


def test_settings_workspace_and_memory_that_are_wrong_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config" / "layerwise" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("theme = 3\n")
    (tmp_path / "file").touch()
    wrong = {"XDG_CONFIG_HOME": tmp_path / "config", "LAYERWISE_HOME": tmp_path / "file", "LAYERWISE_MEMORY": "x",
             "LAYERWISE_LEASES": "/proc/self/x"}  # fmt: skip
    for name, value in wrong.items():
        monkeypatch.setenv(name, str(value))
    done, found = doctor(tmp_path)
    assert done.returncode == 1
    assert "theme" in found["setting"]["text"]
    assert found["folder"]["state"] == "wrong" and "LAYERWISE_HOME" in found["folder"]["mend"]
    assert found["leases"]["state"] == "wrong" and "LAYERWISE_LEASES" in found["leases"]["mend"]
    assert found["memory"]["state"] == "wrong"


def test_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("LAYERWISE_HOME", str(home))
    home_row = next(one for one in workspace() if one.name == "folder")
    assert home_row.state == "ok" and "made when" in home_row.text and not home.exists()


def test_where_names_each_place(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.layerwise]\n")
    done = layerwise("where", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["workspace"] == os.environ["LAYERWISE_HOME"]
    assert found["settings"] == os.environ["XDG_CONFIG_HOME"] + "/layerwise/config.toml"
    assert found["project"] == str(tmp_path / "pyproject.toml")


def test_a_terminal_is_judged_by_what_it_says_of_itself() -> None:
    assert colours({"TERM": "xterm-256color"}).text == "256"
    assert colours({"TERM": "xterm", "COLORTERM": "truecolor"}).text == "16 million"
    assert "NO_COLOR" in colours({"TERM": "xterm-256color", "NO_COLOR": "1"}).text
    assert "default-terminal" in colours({"TERM": "screen", "TMUX": "x"}).mend
    assert "LAYERWISE_ASCII" in characters({"LAYERWISE_ASCII": "1"}).text
    assert tmux_clipboard("on").state == "ok" and "set-clipboard on" in tmux_clipboard("external").mend


H200 = Gpu("NVIDIA H200", 150_000_000_000, "9.0")


@pytest.mark.parametrize(("found", "driver", "state", "told"), [
    (Probe(gpus=(H200,), onnxruntime="1.31", cuda=""), (13, 0), "ok", "runs on the GPU"),
    (Probe(gpus=(H200,), onnxruntime="1.31", cuda="libcudnn.so.9: cannot open"), (13, 0), "wrong", "[cuda13]"),
    (Probe(gpus=(H200,), onnxruntime="1.31", cuda="no kernel image"), (12, 4), "wrong", "[cuda12]"),
    (Probe(gpus=(H200,), onnxruntime="1.31"), (12, 4), "note", "[cuda12]"),
])  # fmt: skip
def test_a_gpu_is_tried_and_what_brings_its_libraries_is_named(
    found: Probe, driver: tuple[int, int], state: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "driver_cuda", lambda: driver)
    monkeypatch.setattr(
        installed, "onnxruntime", lambda: installed.OnnxRuntime(("onnxruntime-gpu 1.31",), (13, 0), True)
    )
    rows = {one.name: one for one in graphics(found)}
    assert "NVIDIA H200, 150 GB, compute capability 9.0" in rows["gpu 0"].text
    assert rows["onnxruntime"].state == state and told in rows["onnxruntime"].text + rows["onnxruntime"].mend


def test_a_driver_that_does_not_answer_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "driver_cuda", lambda: (12, 8))
    (row,) = graphics(Probe(driver="driver and kernel module are of different versions: restart the machine"))
    assert row.state == "wrong" and "restart" in row.text
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (row,) = graphics(Probe())
    assert row.state == "note" and "CUDA_VISIBLE_DEVICES" in row.mend


def test_the_bindings_of_cuda_alone_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "version_of", lambda name: "13.1.0" if name == "cuda-bindings" else "")
    (found,) = [each for each in installation(None) if each.name == "cuda-python"]
    assert (found.state, found.text) == ("ok", "13.1.0")
