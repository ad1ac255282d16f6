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
ONLY_10 = {"calibrate", "calibrate_on_device"}
NAMES = sorted({path.stem for path in EXAMPLES.glob("*.py")} - {"make_models"})
Theirs = Callable[[int, str, Path], str]


@pytest.fixture(scope="module")
def theirs() -> Iterator[Theirs]:
    """Run a source with the real Polygraphy on a fake TensorRT; the same source and version only once."""
    zygotes: dict[int, Zygote] = {}
    known: dict[tuple[int, str], str] = {}

    def run(version: int, source: str, folder: Path) -> str:
        if version not in zygotes:
            try:
                libraries = str(build.cudart())
            except build.Unavailable as reason:
                pytest.skip(str(reason))
            environment = {**os.environ, **fake_environment(version), "LD_LIBRARY_PATH": libraries}
            zygotes[version] = Zygote(environment)
        if (version, source) not in known:
            done = zygotes[version].run(source, str(folder), {})
            assert done["code"] == 0, done["err"] + done["out"]
            known[version, source] = done["out"]
        return known[version, source]

    yield run
    for zygote in zygotes.values():
        zygote.close()


def quiet(name: str, package: str) -> str:
    """The source of an example and of what it needs, for a package, its log silent."""
    sources = [(EXAMPLES / f"{each}.py").read_text() for each in ("make_models", *NEEDS.get(name, []), name)]
    log = "from layerwise.logger import G_LOGGER\nG_LOGGER.module_severity = G_LOGGER.CRITICAL\n"
    return "".join([log, *sources]).replace("layerwise", package)


@pytest.mark.parametrize("name", NAMES)
def test_runs_and_says_what_polygraphy_says(
    name: str, in_fake: Callable[..., str], trt_version: int, theirs: Theirs, tmp_path: Path
) -> None:
    if name in ONLY_10 and trt_version != 10:
        pytest.skip("TensorRT 11 has no calibrators")
    said = in_fake(quiet(name, "layerwise"), LAYERWISE_HOME=str(tmp_path / "home"))
    assert said and said == theirs(trt_version, quiet(name, "polygraphy"), tmp_path)


def test_without_tensorrt_only_the_scripts_that_need_it_fail(tmp_path: Path) -> None:
    def script(name: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(EXAMPLES / f"{name}.py")]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=170, check=False)

    assert script("make_models").returncode == 0
    done = script("work_with_results")
    assert done.returncode == 0, done.stderr
    failed = script("validate_dataset")
    assert failed.returncode == 1 and "pip install 'layerwise[trt]'" in failed.stderr
