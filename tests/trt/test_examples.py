"""The scripts of examples/: each runs, and with the one word replaced the real Polygraphy does the same."""

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
PACKAGES = ["polygraphy", "layerwise"]
MODULES = ["logger", "func", "json", "comparator", "backend.trt", "backend.onnxrt", "backend.common"]
Side = Callable[[str, int, str, Path], str]


@pytest.fixture(scope="module")
def run(live_bindings: Callable[[int], dict[str, str]]) -> Iterator[Side]:
    """Run an example on a side and a version; the real Polygraphy only once for each.

    Sides: "fake", "forwarded" (every call made on the real bindings first), "polygraphy" (on the fake).
    """
    zygotes: dict[tuple[bool, int], Zygote] = {}
    known: dict[tuple[int, str], str] = {}

    def go(side: str, version: int, name: str, folder: Path) -> str:
        if side == "polygraphy" and (version, name) in known:
            return known[version, name]
        package = "polygraphy" if side == "polygraphy" else "layerwise"
        at = side == "forwarded", version
        if at not in zygotes:
            more = {**live_bindings(version), "LAYERWISE_FAKE_TRT_FORWARD": "1"} if at[0] else with_cuda_runtime()
            environment = {**os.environ, **fake_environment(version), **more}
            zygotes[at] = Zygote(environment, *[f"{each}.{module}" for each in PACKAGES[at[0] :] for module in MODULES])
        (folder / side).mkdir()
        home = {"LAYERWISE_HOME": str(folder / "home")}
        done = zygotes[at].run(quiet(name, package), str(folder / side), home)
        assert done["code"] == 0, done["err"] + done["out"]
        return known.setdefault((version, name), done["out"]) if side == "polygraphy" else str(done["out"])

    yield go
    for zygote in zygotes.values():
        zygote.close()


def with_cuda_runtime() -> dict[str, str]:
    """The environment in which the real Polygraphy finds a CUDA runtime over host memory."""
    try:
        return {"LD_LIBRARY_PATH": str(build.cudart())}
    except build.Unavailable as reason:
        pytest.skip(str(reason))


def quiet(name: str, package: str) -> str:
    """The source of an example and of what it needs, for a package, its log silent."""
    sources = [(EXAMPLES / f"{each}.py").read_text() for each in ("make_models", *NEEDS.get(name, []), name)]
    log = "from layerwise.logger import G_LOGGER\nG_LOGGER.module_severity = G_LOGGER.CRITICAL\n"
    return "".join([log, *sources]).replace("layerwise", package)


@pytest.mark.parametrize("side", ["fake", "forwarded"])
@pytest.mark.parametrize("name", NAMES)
def test_runs_and_says_what_polygraphy_says(name: str, side: str, trt_version: int, run: Side, tmp_path: Path) -> None:
    if name in ONLY_10 and trt_version != 10:
        pytest.skip("TensorRT 11 has no classes of calibrators")
    said = run(side, trt_version, name, tmp_path)
    assert said
    if name not in THEIRS_ONLY_10 or trt_version == 10:
        assert said == run("polygraphy", trt_version, name, tmp_path)


def test_without_tensorrt_only_the_scripts_that_need_it_fail(tmp_path: Path) -> None:
    def script(name: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(EXAMPLES / f"{name}.py")]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=170, check=False)

    assert script("make_models").returncode == 0
    done = script("work_with_results")
    assert done.returncode == 0, done.stderr
    failed = script("validate_dataset")
    assert failed.returncode == 1 and "pip install 'layerwise[trt]'" in failed.stderr
