"""The scripts in examples/ run, and with one word replaced the real Polygraphy gives the same result."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trt.conftest import fake_environment
from trt.stubs import build
from trt.zygote import Zygote

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {"load_and_run": ["build_and_run"]}
ONLY_10 = {"calibrate_on_device"}
THEIRS_ONLY_10 = {"calibrate"}
NAMES = sorted({path.stem for path in EXAMPLES.glob("*.py")} - {"make_models"})
MODULES = ["logger", "func", "json", "comparator", "backend.trt", "backend.onnxrt", "backend.common"]
Theirs = Callable[[int, str, Path], str]


@pytest.fixture(scope="module")
def theirs() -> Iterator[Theirs]:
    """Return an example's output with the real Polygraphy on a fake TensorRT; run once per version."""
    zygotes: dict[int, Zygote] = {}
    known: dict[tuple[int, str], str] = {}

    def run(version: int, name: str, folder: Path) -> str:
        if version not in zygotes:
            environment = {**os.environ, **fake_environment(version), **with_cuda_runtime()}
            zygotes[version] = Zygote(environment, *[f"polygraphy.{module}" for module in MODULES])
        if (version, name) not in known:
            folder.mkdir()
            done = zygotes[version].run(quiet(name, "polygraphy"), str(folder), {})
            assert done["code"] == 0, done["err"] + done["out"]
            known[version, name] = done["out"]
        return known[version, name]

    yield run
    for zygote in zygotes.values():
        zygote.close()


def with_cuda_runtime() -> dict[str, str]:
    """The environment in which the real Polygraphy finds a CUDA runtime over host memory."""
    try:
        return {"LD_LIBRARY_PATH": str(build.cudart())}
    except build.Unavailable as reason:
        pytest.skip(str(reason))


def quiet(name: str, package: str) -> str:
    """Return the source of an example and of its dependencies, for a package, with logging off."""
    sources = [(EXAMPLES / f"{each}.py").read_text() for each in ("make_models", *NEEDS.get(name, []), name)]
    log = "from layerwise.logger import G_LOGGER\nG_LOGGER.module_severity = G_LOGGER.CRITICAL\n"
    return "".join([log, *sources]).replace("layerwise", package)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_with_polygraphys_output(
    name: str, trt_version: int, in_fake: Callable[..., str], theirs: Theirs, tmp_path: Path
) -> None:
    if name in ONLY_10 and trt_version != 10:
        pytest.skip("TensorRT 11 has no classes of calibrators")
    said = in_fake(quiet(name, "layerwise"), LAYERWISE_HOME=str(tmp_path / "home"))
    assert said
    if name not in THEIRS_ONLY_10 or trt_version == 10:
        assert said == theirs(trt_version, name, tmp_path / "theirs")


def test_without_tensorrt_only_the_scripts_that_need_it_fail(tmp_path: Path) -> None:
    def script(name: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(EXAMPLES / f"{name}.py")]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=170, check=False)

    assert script("make_models").returncode == 0
    done = script("work_with_results")
    assert done.returncode == 0, done.stderr
    failed = script("validate_dataset")
    assert failed.returncode == 1 and "pip install 'layerwise[trt]'" in failed.stderr
