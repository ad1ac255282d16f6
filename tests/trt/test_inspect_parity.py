"""`inspect model` compared with the real Polygraphy, both on the fake TensorRT: all its lines are in ours, in order."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trt.backend_model import SETUP
from trt.conftest import fake_environment
from trt.stubs import build
from trt.zygote import Zygote

OURS = """
import sys; sys.path.insert(0, {root!r})
{setup}
from pathlib import Path
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.results.inference import IterationResult, RunResults
from layerwise._tool.debugtools.engines.inspect.action import inspect_trt
def action(**fields):
    Path("spec.json").write_text(json.dumps({{"params": fields}}))
    inspect_trt(JobContext(Path("."), 1))
    print("\\n".join(e["text"] for e in read_events(Path(".")) if e.get("level") == "out"))
"""
THEIRS = "import sys; sys.argv = ['polygraphy', *{words!r}]; from polygraphy.tools import main; sys.exit(main())"
Sides = Callable[..., tuple[list[str], list[str]]]


@pytest.fixture(scope="module", params=[10, 11], ids=["trt10", "trt11"])
def both(request: pytest.FixtureRequest) -> Iterator[Zygote]:
    """A process that has our modules and Polygraphy's, over the fake of one version."""
    try:
        library = str(build.cudart())
    except build.Unavailable as reason:
        pytest.skip(str(reason))
    environment = {**os.environ, **fake_environment(request.param), "LD_LIBRARY_PATH": library}
    modules = ("polygraphy.tools", "polygraphy.backend.trt", "layerwise._tool.debugtools.engines.inspect.action")
    zygote = Zygote(environment, *modules)
    yield zygote
    zygote.close()


@pytest.fixture
def sides(both: Zygote, tmp_path: Path) -> Sides:
    """The lines that we print and those that Polygraphy does, without its log's prefixes."""

    def lines(source: str, **environment: str) -> list[str]:
        done = both.run(source, str(tmp_path), environment)
        assert done["code"] == 0, done["err"] + done["out"]
        noise = ("[W] 'colored'", "[I] Loading bytes", "[V]")
        shown = [line for line in done["out"].splitlines() if not line.startswith(noise)]
        return [line.removeprefix("[I] ").rstrip() for line in shown if line.strip()]

    def run(ours: str, *theirs: str) -> tuple[list[str], list[str]]:
        setup = OURS.format(root=str(Path(__file__).parents[2] / ".editable"), setup=SETUP)
        found = lines(setup + ours, LAYERWISE_HOME=str(tmp_path / "home"))
        return found, lines(THEIRS.format(words=list(theirs)))

    return run


def assert_among(theirs: list[str], ours: list[str]) -> None:
    """Every line of theirs is a line of ours, in the same order."""
    left = iter(ours)
    for line in theirs:
        assert line in left, f"{line!r} is missing, or comes too early"


ENGINE = """
options = TrtOptions(profiles=[range_of(1, 2, 4)], config=ConfigOptions(profiling_verbosity="detailed"), fresh=True)
Path("m.engine").write_bytes(build_engine(conv(), options).data)
seen = {"c": np.linspace(-1, 2, 5, dtype="f"), "y": np.zeros(3, "f")}
RunResults([("trt-runner", [IterationResult(seen)])]).save("seen.json")
action(engine="m.engine", show=["layers", "attrs"], values="seen.json")
"""


def test_an_engines_text_includes_polygraphys(sides: Sides) -> None:
    shown = ("inspect", "model", "m.engine", "--show", "layers", "attrs", "--combine-tensor-info", "seen.json")
    ours, theirs = sides(ENGINE, *shown)
    assert len(theirs) > 15 and any("min=-1.00, max=2.00, avg=0.50" in line for line in theirs)
    assert_among(theirs, ours)


def test_a_networks_text_includes_polygraphys(sides: Sides) -> None:
    ours, theirs = sides(
        """
Path("m.onnx").write_bytes(conv().data)
action(model="m.onnx", show=["layers", "attrs"])
""",
        *("inspect", "model", "m.onnx", "--convert-to", "trt", "--show", "layers", "attrs"),
    )
    typed = "Strongly Typed "  # Polygraphy asks for a flag that 11 ignores
    assert len(theirs) > 12 and any("Op: ActivationType.RELU" in line for line in theirs)
    assert_among(theirs, [line.replace(typed, "") for line in ours])
