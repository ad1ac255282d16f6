"""INT8 quantisation with calibration data from any feed."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.onnxrt.quantization import quantize
from layerwise._tool.backends.onnxrt.quantize_spec import QuantizeSpec
from layerwise._tool.backends.reference.evaluate import tensor_infos
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import Structure, changed, node_label
from layerwise._tool.surgery.precision.conversion import every_node
from layerwise._tool.surgery.rewrite.tidy import in_order
from layerwise._tool.surgery.saving.model import save

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def quantised(
    structure: Structure, spec: QuantizeSpec, keep: Collection[str], context: "JobContext"
) -> tuple[Structure, dict[str, Any]]:
    """Return the model with QuantizeLinear and DequantizeLinear nodes, the nodes labelled in `keep` without them.

    Calibration runs onnxruntime on the CPU, in the job's folder. Raises like `backends.onnxrt.quantization.quantize`
    and `backends.feeds.sources.make_feeds`, and UsageError for a model that already has such nodes.
    """
    if is_quantised(structure):
        raise UsageError("the model is quantised already: it has QuantizeLinear and DequantizeLinear nodes")
    structure = _all_named(structure)
    context.artifacts.mkdir(exist_ok=True)
    model, output = context.artifacts / "float.onnx", context.artifacts / "int8.onnx"
    save(structure, model, external=model.with_name("float.data"), overwrite=True)
    fed = [value for value in structure.inputs if value.name not in structure.initializers]
    cached = spec.cache is not None and Path(spec.cache).is_file()
    feeds = make_feeds(spec.feeds, tensor_infos(fed), (lambda text: None) if cached else context.warn)
    if cached:
        context.log(f"Quantising to int8 with the ranges of {shown(str(spec.cache))}")
    else:
        context.log(f"Calibrating ({spec.method}) and quantising to int8")
    if not (cached or spec.feeds.files or spec.feeds.script):
        context.warn("the calibration data is random: give real inputs with --load-inputs or --data-loader-script")

    def progress(count: int) -> None:
        context.progress(count, feeds.count, "inputs", "calibrating")

    quantize(spec, model, output, feeds, exclude=keep, external=True, progress=progress)
    with ModelFile(output) as file:
        result = in_order(Structure.open(file))
    result = result.with_(base=None)  # what lies outside here need not do so in the end
    made = {name for node in result.nodes if node.op_type == "DequantizeLinear" for name in node.output}
    reading = sum(not made.isdisjoint(node.input) for node in result.nodes if node.op_type != "QuantizeLinear")
    context.log(f"{reading} nodes compute on quantised tensors now")
    if not reading:
        context.warn("onnxruntime quantises none of the model's nodes")
    return result, {"quantised": reading}


def is_quantised(structure: Structure) -> bool:
    """Return whether the model has quantisation nodes."""
    return any(node.op_type in ("QuantizeLinear", "DequantizeLinear") for node in every_node(structure.nodes))


def _all_named(structure: Structure) -> Structure:
    """Name all nodes, since onnxruntime excludes nodes by name."""
    taken = {node.name for node in structure.nodes}
    nodes: list[onnx.NodeProto] = []
    for node in structure.nodes:
        label = node_label(node)
        named = bool(node.name) or label in taken
        taken.add(label)
        nodes.append(node if named else changed(node, name=label))
    return structure.with_(nodes=tuple(nodes))
