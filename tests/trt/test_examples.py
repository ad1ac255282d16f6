"""The scripts in examples/ run, and with one word replaced the real Polygraphy gives the same result."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.forks import line_zygote
from trt.conftest import each_on_one
from trt.stubs import build

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {"load_and_run": ["build_and_run"]}
ONLY_10 = {"calibrate_on_device", "calibrate"}
NAMES = sorted({path.stem for path in EXAMPLES.glob("*.py")} - {"make_models"})
Theirs = Callable[[int, str, Path], str]


@pytest.fixture(scope="module")
def theirs() -> Theirs:
    """Return an example's output with the real Polygraphy on a fake TensorRT."""

    def run(version: int, name: str, folder: Path) -> str:
        folder.mkdir()
        with_cuda_runtime()
        done = line_zygote(version).run(quiet(name, "polygraphy"), str(folder), {})
        assert done["code"] == 0, done["err"] + done["out"]
        return str(done["out"])

    return run


def with_cuda_runtime() -> None:
    """Skip where the real Polygraphy finds no CUDA runtime over host memory."""
    try:
        build.cudart()
    except build.Unavailable as reason:
        pytest.skip(str(reason))


def quiet(name: str, package: str) -> str:
    """Return the source of an example and of its dependencies, for a package, with logging off."""
    sources = [(EXAMPLES / f"{each}.py").read_text() for each in ("make_models", *NEEDS.get(name, []), name)]
    log = "from layerwise.logger import G_LOGGER\nG_LOGGER.module_severity = G_LOGGER.CRITICAL\n"
    return "".join([log, *sources]).replace("layerwise", package)


@pytest.mark.parametrize(("name", "trt_version"), each_on_one(NAMES, ONLY_10), indirect=["trt_version"])
def test_an_example_runs_with_polygraphys_output(
    name: str, trt_version: int, in_fake: Callable[..., str], theirs: Theirs, tmp_path: Path
) -> None:
    said = in_fake(quiet(name, "layerwise"), LAYERWISE_HOME=str(tmp_path / "home"))
    assert said == theirs(trt_version, name, tmp_path / "theirs") != ""


def test_without_tensorrt_only_the_scripts_that_need_it_fail(tmp_path: Path) -> None:
    def script(name: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(EXAMPLES / f"{name}.py")]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=170, check=False)

    assert script("make_models").returncode == 0
    done = script("work_with_results")
    assert done.returncode == 0, done.stderr
    failed = script("validate_dataset")
    assert failed.returncode == 1 and "pip install 'layerwise[trt]'" in failed.stderr
