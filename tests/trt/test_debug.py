"""What TensorRT gets wrong, found on the fake of both versions: FP16 that is too coarse, tactics, refused nodes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from trt.debug_models import SETUP
from trt.zygote import Zygote

ROOT = Path(__file__).parents[2]
Find = Callable[..., list[str]]


@pytest.fixture
def find(zygotes: Callable[[int, bool], Zygote], trt_version: int, tmp_path: Path) -> Find:
    """Run a script after SETUP with these faults; the lines that it prints."""

    def run(source: str, *, forwarded: bool = False, **faults: object) -> list[str]:
        setup = SETUP.format(root=str(ROOT), tests=str(ROOT / "tests"))
        home = {"LAYERWISE_HOME": str(tmp_path / "home"), "LAYERWISE_LEASES": str(tmp_path / "leases")}
        environment = {**home, "LAYERWISE_FAKE_TRT_FAULTS": json.dumps(faults)}
        done = zygotes(trt_version, forwarded).run(setup + source, str(tmp_path), environment)
        assert done["code"] == 0, done["err"] + done["out"]
        return str(done["out"]).splitlines()

    return run


def coarse(*layers: str, bits: int = 3) -> dict[str, object]:
    return {"layers": list(layers), "bits": bits}


@pytest.mark.parametrize("layers", [("softplus",), ("softplus", "tanh")], ids=["one", "two"])
def test_layers_that_lose_too_much_in_fp16_are_located_and_reduced(find: Find, layers: tuple[str, ...]) -> None:
    said = find(
        """
suspect = trt(fp16=True)
print(*sorted(located(suspect)))
done = searched("reduce", suspect)
print(*sorted(name for names in done.found for name in names), done.result["verified"])
print(len(done.found), *sorted(node.name for node in onnx.load(HERE / "found.onnx").graph.node))
done = searched("bisect", suspect, tolerance=ToleranceSpec(atol={"": 3e-3}, rtol={"": 3e-3}))
print(done.found[0][0])
print(*(HERE / "home/cache/trt/candidates").glob("*.engine"))
""",
        fp16=coarse(*layers),
    )
    assert said[0].split() == sorted(layers)
    assert said[1].split() == [*sorted(layers), "True"]
    assert int(said[2].split()[0]) == len(layers)
    assert said[3] == ("tanh" if "tanh" in layers else "softplus")
    assert said[4] == ""


def test_a_precision_that_is_asked_of_a_layer_holds_in_parts_that_have_it(find: Find) -> None:
    said = find(
        """
kept = dict(fp16=True, precision_constraints="obey")
print(*located(trt(**kept, network={"layer_precisions": {"softplus": "float32"}})))
done = searched("reduce", trt(**kept, network={"layer_precisions": {"softplus": "float32", "exp": "float32"}}))
print(*(name for names in done.found for name in names))
print(error_of(lambda: located(trt(**kept, network={"layer_precisions": {"nothing": "float32"}}))))
""",
        fp16=coarse("softplus", "tanh"),
    )
    assert said[0] == "tanh" and said[1] == "tanh"
    assert "nothing" in said[2] and "UsageError" in said[2]


PRECISION = """
from debugtools.precision.action import debug_precision
from backends.jobs.context import JobContext
def lowered(suspect, model=None, low="float16", tolerance=ToleranceSpec(atol={"": 4e-3}, rtol={"": 4e-3}), **more):
    compare = CompareSpec(model=model or chain(*OPERATORS), runners=[suspect], tolerance=tolerance)
    spec = PrecisionSpec(search=DebugSpec(compare=compare, output=str(HERE / "mixed.onnx")), low=low, **more)
    context = JobContext(job_folder(spec, "precision"), 1)
    context.writer.write("state", state="running", attempt=1)
    return debug_precision(context)
def kept(result):
    return sorted(node["node"] for node in result["found"][0]["nodes"])
"""


@pytest.mark.parametrize("layers", [("softplus",), ("softplus", "tanh")], ids=["one", "two"])
def test_debug_precision_keeps_the_layers_that_lose_too_much(
    find: Find, trt_version: int, layers: tuple[str, ...]
) -> None:
    said = find(
        PRECISION
        + """
result = lowered(trt())
print(*kept(result), result["verified"], result["all_low"])
print(json.dumps(result["found"][0]["build"]), result["found"][0]["file"]["verdict"])
print(sorted({v.type.tensor_type.elem_type for v in onnx.load(HERE / "mixed.onnx").graph.value_info} - {1}))
typed = lowered(trt(network={"strongly_typed": True}))
print(*kept(typed))
print(*kept(lowered(trt(), chain(*OPERATORS, names=False))))
print(*(HERE / "home/cache/trt/candidates").glob("*.engine"))
""",
        fp16=coarse(*layers, bits=3),
    )
    assert said[0].split() == [*sorted(layers), "True", "bad"]
    options, verdict = said[1].rsplit(" ", 1)
    named = json.loads(options)
    assert named[:3] == ["--fp16", "--precision-constraints", "obey"] and verdict == "good"
    assert sorted(named[4:]) == sorted(f"{name}:float32" for name in layers)
    assert said[3].split() == sorted(layers)
    assert said[5] == ""
