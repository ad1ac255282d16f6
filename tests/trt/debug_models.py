"""What searches on the fake start with: models whose layers can be spoilt, and the searches as jobs run them."""

LOADED = (
    "layerwise._tool.debugtools.search.driver.action", "layerwise._tool.debugtools.search.driver.node_search",
    "layerwise._tool.debugtools.search.driver.repeat", "layerwise._tool.debugtools.locate.action",
    "layerwise._tool.debugtools.locate.run", "layerwise._tool.debugtools.search.precision.run",
    "layerwise._tool.debugtools.search.precision.run", "layerwise._tool.debugtools.convert.engine_precision",
    "layerwise._tool.backends.trt.inference.late",
)  # fmt: skip
"""What searches import on their way: loaded once, before any of them."""
SETUP = """
import json
from pathlib import Path
import numpy as np
import onnx
from onnx import helper, numpy_helper
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.backends.trt.options import ConfigOptions, NetworkOptions, TrtOptions, to_dict
from layerwise._tool.debugtools.actions import hand_over
from layerwise._tool.debugtools.compare.spec import CompareSpec, ToleranceSpec
from layerwise._tool.debugtools.search.spec import DebugSpec, FlakySpec
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.search.spec import PrecisionSpec
from support.debugging import as_read, search, job_folder
from support.locating import run_locate
hand_over()
OPERATORS = ("Abs", "Neg", "Tanh", "Softplus", "Exp", "Sqrt")
HERE = Path.cwd()
def chain(*operators, names=True):
    nodes = [helper.make_node(op, [f"t{i}"], [f"t{i + 1}"], op.lower() if names else "")
             for i, op in enumerate(operators)]
    ends = [helper.make_tensor_value_info(name, 1, ["N", 8]) for name in ("t0", f"t{len(nodes)}")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, HERE / "chain.onnx")
    return str(HERE / "chain.onnx")
def trt(**config):
    network = NetworkOptions(**config.pop("network", {}))
    own = {key: config.pop(key) for key in list(config) if key in TrtOptions.__struct_fields__}
    return RunnerSpec(kind="trt", options=to_dict(TrtOptions(config=ConfigOptions(**config), network=network, **own)))
ORT = RunnerSpec(kind="onnxrt", threads=1)
def sides(suspect, model=None, **more):
    return CompareSpec(model=model or chain(*OPERATORS), runners=[suspect, ORT], **more)
def located(suspect, **more):
    return run_locate(LocateSpec(compare=sides(suspect, **more))).nodes
def searched(what, suspect, **more):
    own = {key: more.pop(key) for key in list(more) if key in DebugSpec.__struct_fields__}
    return search(DebugSpec(compare=sides(suspect, **more), output=str(HERE / "found.onnx"), **own), what)
def error_of(call):
    try:
        return call()
    except LayerwiseError as error:
        return f"{type(error).__name__}: {error}"
"""
SIZES = """
def sized():
    made = [("Relu", "x", "r"), ("Shape", "r", "s"), ("Gather", "s first", "n"), ("Concat", "n rest", "to"),
            ("Reshape", "r to", "flat"), ("Softplus", "flat", "p"), ("Exp", "p", "y")]
    nodes = [helper.make_node(op, reads.split(), [gives], op.lower()) for op, reads, gives in made]
    nodes[3].attribute.append(helper.make_attribute("axis", 0))
    weights = [numpy_helper.from_array(np.array([0]), "first"), numpy_helper.from_array(np.array([-1]), "rest")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["N", 2, 4])],
                              [helper.make_tensor_value_info("y", 1, ["N", 8])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), HERE / "sized.onnx")
    return str(HERE / "sized.onnx")
"""
"""A model that computes the sizes of a Reshape."""
BUNDLED = """
from layerwise._tool.debugtools.bundle.action import bundle
from layerwise._tool.debugtools.bundle.spec import BundleSpec
from layerwise._tool.debugtools.bundle.write import try_bundle
from layerwise._tool.backends.jobs.context import JobContext
def bundled(name, suspect, model, nodes, **more):
    spec = BundleSpec(compare=sides(suspect, model, **more), nodes=nodes, output=str(HERE / name))
    return bundle(JobContext(job_folder(spec, "bundle"), 1))
"""
"""Repro bundles."""


def coarse(*layers: str, bits: int = 3) -> dict[str, object]:
    """Layers that keep so many bits of mantissa in FP16."""
    return {"layers": list(layers), "bits": bits}
