"""Which nodes must stay in FP32 on TensorRT: by flags and constraints on 10, in the graph on 11."""

import json
from collections.abc import Callable

import pytest
from trt.conftest import ON_10
from trt.debug_models import coarse

Find = Callable[..., list[str]]
PRECISION = """
from layerwise._tool.debugtools.search.precision.run import debug_precision
from layerwise._tool.backends.jobs.context import JobContext
def lowered(suspect, model=None, low="float16", mode="ddmin", atol=4e-3, **more):
    tolerance = ToleranceSpec(atol={"": atol}, rtol={"": atol})
    compare = CompareSpec(model=model or chain(*OPERATORS), runners=[suspect], tolerance=tolerance)
    spec = PrecisionSpec(search=DebugSpec(compare=compare, output=str(HERE / "mixed.onnx"), mode=mode), low=low, **more)
    context = JobContext(job_folder(spec, "precision"), 1)
    context.writer.write("state", state="running", attempt=1)
    return as_read(debug_precision(context))
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


@ON_10
def test_single_cuts_keep_the_layers_that_polygraphy_keeps(find: Find) -> None:
    """Its own search on the fake 10, of the same fault: "try running the first 4 layer(s) in higher precision"."""
    said = find(
        PRECISION
        + """
for mode in ("linear", "bisect"):
    print(*kept(lowered(trt(), mode=mode)))
low = lowered(trt(), low="bfloat16", atol=3e-2)
print(low["verified"], low["low"], low["found"][0]["build"][0])
""",
        fp16=coarse("softplus", bits=2),
    )
    assert said[:2] == ["abs neg softplus tanh"] * 2
    assert said[2] == "True bfloat16 --bf16"


INT8 = """
def wide():
    rng = np.random.default_rng(0)
    first, middle, last = (rng.standard_normal((8, 8)).astype("f") / 3 for _ in range(3))
    middle[:, 0] *= 3000.0
    last[0] = 0.0
    nodes = [helper.make_node("MatMul", [read, name], [gives], name)
             for read, name, gives in (("x", "first", "a"), ("a", "middle", "b"), ("b", "last", "y"))]
    weights = [numpy_helper.from_array(array, name)
               for name, array in (("first", first), ("middle", middle), ("last", last))]
    ends = [helper.make_tensor_value_info(name, 1, [4, 8]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), HERE / "wide.onnx")
    return str(HERE / "wide.onnx")
"""


def test_int8_keeps_layers_with_values_of_two_scales(find: Find, trt_version: int) -> None:
    """One column is 3000 times as large as the others, and not needed: quantised with it, the rest is lost.

    The file has quantisation nodes on both versions: on 10, where the builder quantises otherwise, it may not pass.
    """
    said = find(
        PRECISION
        + INT8
        + """
result = lowered(trt(), wide(), low="int8", atol=0.3)
print(*kept(result), result["verified"], result["all_low"], result["found"][0]["file"]["verdict"])
print(*result["found"][0]["build"])
print("QuantizeLinear" in {node.op_type for node in onnx.load(HERE / "mixed.onnx").graph.node})
print(error_of(lambda: lowered(ORT, wide(), low="int8")))
"""
    )
    nodes, verified, all_low, file = said[0].rsplit(" ", 3)
    assert (verified, all_low) == ("True", "bad") and (file == "good" or trt_version == 10)
    assert set(nodes.split()) <= {"middle", "last"} and nodes
    assert said[1].startswith("--int8 --precision-constraints obey --layer-precisions ")
    assert said[2] == "True"
    assert "--trt" in said[3]
