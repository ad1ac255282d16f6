"""Extension modules of `run`, found by entry points: their options, loaders and runners, as in Polygraphy."""

import os
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest
from support.cli import Done, layerwise
from support.models import from_text

MODEL = from_text("g (float[2,4] x) => (float[2,4] y) { [neg] n = Neg(x) [abs] y = Abs(n) }")
ARGS = '''
from PROGRAM import mod
from PROGRAM.tools.args import ModelArgs, OnnxLoadArgs, OnnxrtSessionArgs, TfLoadArgs
from PROGRAM.tools.args import util as args_util
from PROGRAM.tools.args.base import BaseArgs, BaseRunnerArgs
from PROGRAM.tools.script import inline, make_invocable, safe

class PlusArgs(BaseArgs):
    """Plus: what is added.

    Depends on:

        - OnnxLoadArgs
    """

    def add_parser_args_impl(self):
        self.group.add_argument("--plus-much", type=float, default=None, help="how much, in 100%% of one")

    def parse_impl(self, args):
        self.much = args_util.get(args, "plus_much")

    def add_to_script_impl(self, script):
        loader = self.arg_groups[OnnxLoadArgs].add_to_script(script)
        script.add_import(imports=["Plus"], frm="lw_plus.backend")
        return script.add_loader(make_invocable("Plus", loader, much=self.much), loader_id="plus")

class PlusRunnerArgs(BaseRunnerArgs):
    """Plus Runner: running what is added to."""

    def get_name_opt_impl(self):
        return "Plus Runner", "plus"

    def add_to_script_impl(self, script):
        path = self.arg_groups[ModelArgs].path
        script.add_import(imports=["PlusRunner"], frm="lw_plus.backend")
        script.add_runner(make_invocable("PlusRunner", self.arg_groups[PlusArgs].add_to_script(script), path))

class SessionArgs(BaseRunnerArgs):
    """Session Runner: what onnxruntime has."""

    def get_name_opt_impl(self):
        return "Session Runner", "plus-session"

    def add_to_script_impl(self, script):
        script.add_import(imports=["OnnxrtRunner"], frm="PROGRAM.backend.onnxrt")
        script.add_runner(make_invocable("OnnxrtRunner", self.arg_groups[OnnxrtSessionArgs].add_to_script(script)))

class TfArgs(BaseRunnerArgs):
    """TensorFlow Runner: a graph."""

    def get_name_opt_impl(self):
        return "TensorFlow Runner", "plus-tf"

    def add_to_script_impl(self, script):
        self.arg_groups[TfLoadArgs].add_to_script(script)

def groups():
    return [PlusArgs(), PlusRunnerArgs(), SessionArgs(), TfArgs()]
'''
BACKEND = """
import numpy as np
from PROGRAM import util
from PROGRAM.backend.base import BaseLoader, BaseRunner
from PROGRAM.common import TensorMetadata

class Plus(BaseLoader):
    def __init__(self, model, much=None):
        self._model, self._much = model, util.default(much, 0.0)

    def call_impl(self):
        model, _ = util.invoke_if_callable(self._model)
        print("adding", self._much)
        return model, self._much

class PlusRunner(BaseRunner):
    def __init__(self, model, path, name=None):
        super().__init__(name=name, prefix="plus-runner")
        self._model, self._path = model, path

    def activate_impl(self):
        (self.model, self.much), _ = util.invoke_if_callable(self._model)

    def get_input_metadata_impl(self):
        value = self.model.graph.input[0]
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        return TensorMetadata().add(value.name, np.float32, shape)

    def infer_impl(self, feed_dict):
        self.inference_time = 0.25
        return {"y": np.abs(feed_dict["x"]) + np.float32(self.much)}

    def deactivate_impl(self):
        del self.model, self.much
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(MODEL, tmp_path / "m.onnx")
    return tmp_path


def installed(folder: Path, program: str, group: str = "polygraphy.run.plugins") -> str:
    """A distribution with an extension module; the path that finds it."""
    place = folder / f"site-{program}"
    (place / "lw_plus").mkdir(parents=True)
    (place / "lw_plus" / "__init__.py").touch()
    for name, text in (("args", ARGS), ("backend", BACKEND)):
        (place / "lw_plus" / f"{name}.py").write_text(text.replace("PROGRAM", program))
    about = place / "lw_plus-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lw-plus\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[console_scripts]\nx = y:z\n[{group}]\nplus = lw_plus.args:groups\n")
    return str(place)


def run(folder: Path, site: str, *words: str) -> Done:
    path = os.pathsep.join(filter(None, [site, os.environ.get("PYTHONPATH", "")]))
    return layerwise("run", *words, cwd=folder, env={**os.environ, "PYTHONPATH": path})


@pytest.mark.parametrize("program", ["layerwise", "polygraphy"])
def test_its_runner_is_compared_with_onnxruntime(folder: Path, program: str) -> None:
    """Renamed, and as it is where Polygraphy is installed."""
    site = installed(folder, program)
    done = run(folder, site, "m.onnx", "--plus", "--onnxrt", "--plus-much", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Average inference time: 250 ms" in done.stdout and "Passed: 1/1 iterations" in done.stdout
    assert "\nadding 0.0\n" in done.stdout
    off = run(folder, site, "m.onnx", "--plus-session", "--plus", "--plus-much=0.5", "--save-outputs", "o.json")
    assert off.returncode == 1 and "[abs=0.5]" in off.stdout and (folder / "o.json").is_file()


def test_a_generated_script_has_its_runner(folder: Path) -> None:
    site = installed(folder, "layerwise")
    line = ("m.onnx", "--plus", "--onnxrt", "--gen-script", "same.py")
    assert run(folder, site, *line).returncode == 0 and "extension()" in (folder / "same.py").read_text()
    again = subprocess.run(
        [sys.executable, "same.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": site},
        capture_output=True,
        check=False,
    )
    assert again.returncode == 0 and b"Passed: 1/1" in again.stdout


def test_its_options_are_in_the_help_and_what_is_not_offered_is_told(folder: Path) -> None:
    site = installed(folder, "layerwise", "layerwise.run.plugins")
    shown = run(folder, site, "--help").stdout
    assert "--plus-much" in shown and "in 100% of one" in shown and "Plus Runner (lw_plus)" in shown
    refused = run(folder, site, "m.onnx", "--plus-tf")
    assert refused.returncode == 2 and "TfLoadArgs is not offered" in refused.stderr
    assert "ModelArgs, " in refused.stderr and "Traceback" not in refused.stderr


def test_a_module_that_fails_is_told_and_the_rest_runs(folder: Path) -> None:
    site = installed(folder, "layerwise")
    (folder / "site-layerwise" / "lw_plus" / "args.py").write_text("raise RuntimeError('broken in two')")
    done = run(folder, site, "m.onnx", "--onnxrt")
    assert done.returncode == 0 and "Failed to load plugin: plus" in done.stdout + done.stderr
    assert "broken in two" in done.stdout + done.stderr


def test_looking_for_them_costs_little() -> None:
    from layerwise._tool.tui.cli.extensions.found import declared

    declared()
    started = time.process_time()
    for _ in range(10):
        assert declared() == {}
    assert (time.process_time() - started) / 10 < 0.02
