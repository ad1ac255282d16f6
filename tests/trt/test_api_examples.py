"""What the examples of Polygraphy's API do, in scripts of our own: with one word changed they print the same on both.

The numbers are those of its examples/api; the scripts in examples/ are tested in test_examples.py.
"""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.forks import line_zygote
from trt.api_behaviours import BEHAVIOURS
from trt.api_scripts import EXAMPLES, TORCH
from trt.conftest import each_on_one
from trt.test_examples import Theirs, with_cuda_runtime

SCRIPTS = EXAMPLES | BEHAVIOURS
ONLY_10 = {"04 calibration", "tactics"}  # TensorRT 11 has no calibrators and selectors, and Polygraphy nothing else


def identity(name: str, shape: list[object], ends: tuple[str, str], between: str = "") -> onnx.ModelProto:
    """A model that gives its input back, by way of another tensor."""
    names = [ends[0], *([between] if between else []), ends[1]]
    nodes = [helper.make_node("Identity", [a], [b], f"to_{b}") for a, b in pairwise(names)]
    values = [helper.make_tensor_value_info(end, TensorProto.FLOAT, shape) for end in ends]
    graph = helper.make_graph(nodes, name, values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    from polygraphy.comparator import RunResults
    from polygraphy.json import save_json

    onnx.save(identity("identity", [1, 1, 2, 2], ("x", "y")), tmp_path / "identity.onnx")
    onnx.save(identity("chain", [1, 1, 2, 2], ("x", "y"), "m"), tmp_path / "chain.onnx")
    onnx.save(identity("dynamic", ["N", 3, 4, 4], ("X", "Y")), tmp_path / "dynamic_identity.onnx")
    save_json([{"x": np.ones((1, 2), np.float32)}], str(tmp_path / "inputs.json"))
    results = RunResults()
    results.add([{"y": np.arange(3)}], runner_name="a")
    results.save(str(tmp_path / "outputs.json"))
    return tmp_path


@pytest.fixture(scope="module")
def theirs() -> Theirs:
    """What a script prints with Polygraphy on a fake TensorRT."""

    def run(version: int, name: str, models: Path) -> str:
        with_cuda_runtime()
        folder = models / "theirs"
        folder.mkdir()
        for path in models.glob("*.*"):
            (folder / path.name).write_bytes(path.read_bytes())
        done = line_zygote(version).run(script(name, "polygraphy"), str(folder), {})
        assert done["code"] == 0, done["err"] + done["out"]
        return str(done["out"])

    return run


def script(name: str, package: str) -> str:
    head = (
        "import numpy as np\nimport tensorrt as trt\nfrom PKG.logger import G_LOGGER as LOG\nLOG.module_severity = 60\n"
    )
    head += "from PKG.backend.trt import get_trt_logger as LOGGER\n"
    ones = "ONES = np.ones((1, 1, 2, 2), np.float32)\n"
    return f"{head}{ones}{SCRIPTS[name]}".replace("PKG", package)


@pytest.mark.parametrize(("name", "trt_version"), each_on_one(SCRIPTS, ONLY_10), indirect=["trt_version"])
def test_a_script_prints_what_it_prints_with_polygraphy(
    name: str, trt_version: int, in_fake: Callable[..., str], models: Path, theirs: Theirs
) -> None:
    wanted = theirs(trt_version, name, models)
    said = in_fake(script(name, "layerwise"), LAYERWISE_HOME=str(models / "home"))
    assert said == wanted != ""


def test_tensors_of_torch_calibrate_and_come_out(in_fake: Callable[..., str], models: Path) -> None:
    """Example 09; Polygraphy cannot run it here, as torch's own CUDA runtime is loaded."""
    place = Path(pytest.importorskip("torch").__file__).parents[1]
    head = f"import sys\nsys.path.append({str(place)!r})\nimport numpy as np, tensorrt as trt\n"
    said = in_fake(head + TORCH.replace("PKG", "layerwise"), LAYERWISE_HOME=str(models / "home"))
    assert "True cpu tensor([[[[1., 1.],\n          [1., 1.]]]])" in said
