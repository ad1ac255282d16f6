"""Fixtures of the TensorRT tests: the fake modules on the path of children, alone or before the real bindings."""

import json
import os
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trt import backend_model
from trt.debug_models import LOADED, SETUP
from trt.stubs import build, load
from trt.zygote import Zygote

HERE = Path(__file__).parent
FAKE = HERE / "fake"
_IMPORTED = ("layerwise.backend.trt", "layerwise.comparator", "layerwise._tool.debugtools.engines.inspect.action")


# for what does not depend on the version: some tests meet one, some the other
ON_10 = pytest.mark.parametrize("trt_version", [10], ids=["trt10"], indirect=True)
ON_11 = pytest.mark.parametrize("trt_version", [11], ids=["trt11"], indirect=True)


def each_on_one(names: Iterable[str], only_10: Container[str]) -> list[Any]:
    """Names, each with a version of TensorRT, by turns: where nothing but what is said of the name depends on it."""
    chosen = [(name, 10 if name in only_10 else 10 + k % 2) for k, name in enumerate(names)]
    return [pytest.param(name, version, id=f"trt{version}-{name}") for name, version in chosen]


@pytest.fixture(params=[10, 11], ids=["trt10", "trt11"])
def trt_version(request: pytest.FixtureRequest) -> int:
    """Both versions, one after the other."""
    return int(request.param)


def fake_environment(version: int) -> dict[str, str]:
    """What makes `import tensorrt` and `import cuda` find the fakes in a child."""
    path = os.pathsep.join(filter(None, [str(FAKE), os.environ.get("PYTHONPATH", "")]))
    return {"PYTHONPATH": path, "LAYERWISE_FAKE_TRT": str(version)}


@pytest.fixture
def fake_trt(trt_version: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment in which a child process finds the fake `tensorrt` and `cuda`; set for this process too."""
    found = fake_environment(trt_version)
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    return {**os.environ, **found}


@pytest.fixture(scope="session")
def live_bindings() -> Callable[[int], dict[str, str]]:
    """The environment in which stubs/load.py imports the real bindings of a version; skips if they are unavailable."""

    def find(major: int) -> dict[str, str]:
        try:
            live = build.live(major)
        except build.Unavailable as reason:
            pytest.skip(str(reason))
        return load.environment(str(live.folder), [str(library) for library in live.libraries])

    return find


@pytest.fixture
def forwarded_trt(
    fake_trt: dict[str, str], trt_version: int, live_bindings: Callable[[int], dict[str, str]], tmp_path: Path
) -> dict[str, str]:
    """As `fake_trt`, each call made on the real bindings first; names are in $LAYERWISE_FAKE_TRT_FORWARD_LOG."""
    log = tmp_path / "forwarded.txt"
    log.touch()
    forward = {"LAYERWISE_FAKE_TRT_FORWARD": "1", "LAYERWISE_FAKE_TRT_FORWARD_LOG": str(log)}
    return {**fake_trt, **live_bindings(trt_version), **forward}


@pytest.fixture
def polygraphy_trt(fake_trt: dict[str, str]) -> dict[str, str]:
    """As `fake_trt`, with a CUDA runtime over host memory that Polygraphy loads: its `--trt` then runs on the fake."""
    try:
        return {**fake_trt, "LD_LIBRARY_PATH": str(build.cudart())}
    except build.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def zygotes(live_bindings: Callable[[int], dict[str, str]]) -> Iterator[Callable[[int, bool], Zygote]]:
    """Processes that fork for a script each, one for every version, forwarding or not."""
    made: dict[tuple[int, bool], Zygote] = {}

    def find(version: int, forwarded: bool) -> Zygote:
        if (version, forwarded) not in made:
            environment = {**os.environ, **fake_environment(version)}
            if forwarded:
                environment |= {**live_bindings(version), "LAYERWISE_FAKE_TRT_FORWARD": "1"}
            made[version, forwarded] = Zygote(environment, *_IMPORTED)
        return made[version, forwarded]

    yield find
    for zygote in made.values():
        zygote.close()


def has_bindings(version: int) -> bool:
    """Whether the real bindings of a version can be had here."""
    try:
        return bool(build.live(version))
    except build.Unavailable:
        return False


@pytest.fixture
def in_fake(trt_version: int, zygotes: Callable[[int, bool], Zygote], tmp_path: Path) -> Callable[..., str]:
    """Run a script where `tensorrt` is the fake, with every call made on the real bindings first, which changes no
    answer; where they cannot be had on the fake alone, as all that runs command lines is."""
    forwarded = has_bindings(trt_version)

    def run(source: str, **environment: str) -> str:
        done = zygotes(trt_version, forwarded).run(source, str(tmp_path), environment)
        assert done["code"] == 0, done["err"] + done["out"]
        return str(done["out"])

    return run


@pytest.fixture(scope="session")
def searching() -> Iterator[Callable[[int], Zygote]]:
    """Processes that fork for a script each, one for every version, with all that searches import."""
    made: dict[int, Zygote] = {}

    def process(version: int) -> Zygote:
        if version not in made:
            environment = {**os.environ, **fake_environment(version)}
            environment["PYTHONPATH"] += os.pathsep + str(HERE.parent)
            made[version] = Zygote(environment, "support.debugging", "support.locating", *LOADED)
        return made[version]

    yield process
    for zygote in made.values():
        zygote.close()


@pytest.fixture
def find(searching: Callable[[int], Zygote], trt_version: int, tmp_path: Path) -> Callable[..., list[str]]:
    """Run a script after SETUP with these faults; the lines that it prints."""

    def run(source: str, **faults: object) -> list[str]:
        home = {"LAYERWISE_HOME": str(tmp_path / "home"), "LAYERWISE_LEASES": str(tmp_path / "leases")}
        environment = {**home, "LAYERWISE_FAKE_TRT_FAULTS": json.dumps(faults)}
        done = searching(trt_version).run(SETUP + source, str(tmp_path), environment)
        assert done["code"] == 0, done["err"] + done["out"]
        return str(done["out"]).splitlines()

    return run


@pytest.fixture
def scenario(in_fake: Callable[..., str], tmp_path: Path) -> Callable[..., str]:
    """Run a script after backend_model.SETUP in its own workspace; return its output."""

    def go(source: str, **environment: str) -> str:
        path = f"import sys; sys.path.insert(0, {str(HERE.parents[1] / '.editable')!r})\n"
        return in_fake(path + backend_model.SETUP + source, LAYERWISE_HOME=str(tmp_path / "home"), **environment)

    return go
