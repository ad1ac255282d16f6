"""Bundles of a comparison with a PyTorch module: the script needs torch, numpy and onnxruntime alone."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import msgspec
import onnx
import pytest

from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.bundle.action import bundle
from layerwise._tool.debugtools.bundle.spec import BundleSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec

torch = pytest.importorskip("torch", reason="torch is not installed")

BUILD = """
import torch

class Net(torch.nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.up, self.norm, self.down = torch.nn.Linear(6, 8), torch.nn.LayerNorm(8, eps=eps), torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.down(self.norm(self.up(x)).relu())

def make(eps=1e-5):
    torch.manual_seed(0)
    return Net(eps).eval(), (torch.randn(4, 6),)

def changed():
    return make(0.3)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bundle")
    (made / "build.py").write_text(textwrap.dedent(BUILD))
    names: dict[str, object] = {}
    exec(BUILD, names)
    net, inputs = names["make"]()  # type: ignore[operator]
    with pytest.warns(DeprecationWarning):
        torch.onnx.export(net, inputs, made / "model.onnx", opset_version=17, dynamo=False, input_names=["x"])
    return made


def written(folder: Path, into: Path, suspect: RunnerSpec, reference: RunnerSpec, number: int) -> Path:
    """A bundle of one node, which the script shows to be wrong."""
    compare = CompareSpec(model=str(folder / "model.onnx"), runners=[suspect, reference])
    result = bundled(BundleSpec(compare=compare, output=str(into), nodes=[number]))
    assert result["passed"], result
    return into


def bundled(spec: BundleSpec) -> dict[str, Any]:
    folder, lock = Workspace().create(JobSpec(action="bundle", params=msgspec.to_builtins(spec)))
    os.close(lock)
    context = JobContext(folder, 1)
    try:
        return bundle(context)
    finally:
        context.writer.close()


def alone(folder: Path, elsewhere: Path) -> subprocess.CompletedProcess[str]:
    """Run the script in another folder, with no path to our packages."""
    shutil.copytree(folder, elsewhere)
    place = str(Path(torch.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "repro.py"], cwd=elsewhere, env={"PATH": os.environ["PATH"], "PYTHONPATH": place},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_module_at_fault_is_written_as_its_operators(folder: Path, tmp_path: Path) -> None:
    suspect = RunnerSpec(kind="torch", model=f"{folder / 'build.py'}:changed")
    made = written(folder, tmp_path / "b", suspect, RunnerSpec(kind="onnxrt", threads=1), 1)
    assert {path.name for path in made.iterdir()} >= {"module.pt2", "repro.py", "compare.py", "golden.npz"}
    assert "layerwise" not in (made / "repro.py").read_text().lower()
    done = alone(made, tmp_path / "elsewhere")
    assert (done.returncode, "1 of 1 outputs are wrong" in done.stdout) == (1, True), done.stderr
    told = (made / "README.md").read_text()
    assert "build.py:" in told and "in the reference LayerNormalization" in told


def test_a_node_at_fault_is_held_against_the_module(folder: Path, tmp_path: Path) -> None:
    reference = RunnerSpec(kind="torch", model=f"{folder / 'build.py'}:changed")
    suspect = RunnerSpec(kind="onnxrt", threads=1)
    operators = [node.op_type for node in onnx.load(folder / "model.onnx").graph.node]
    made = written(folder, tmp_path / "b", suspect, reference, operators.index("LayerNormalization"))
    done = alone(made, tmp_path / "elsewhere")
    assert (done.returncode, "1 of 1 outputs are wrong" in done.stdout) == (1, True), done.stderr
    told = (made / "README.md").read_text()
    assert "of module norm" in told and "in the reference aten.layer_norm" in told
