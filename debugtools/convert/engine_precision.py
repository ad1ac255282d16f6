"""Reduced precision: INT8 quantisation with calibration data from any feed, and the precision of an engine.

The latter is written into a graph before TensorRT parses it: always on 11, on request on 10.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.filesystem.temporary import temporary_folder
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.model.reads import every_node
from layerwise._tool.backends.onnxrt.quantization import quantize, takes_caches
from layerwise._tool.backends.onnxrt.quantize_spec import CALIBRATORS, QuantizeSpec
from layerwise._tool.backends.reference.evaluate import tensor_infos
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.building.calibration import without_effect
from layerwise._tool.backends.trt.options import ConfigOptions, TrtOptions
from layerwise._tool.surgery.feeds.planned import planned
from layerwise._tool.surgery.model.structure import Structure, changed, node_label
from layerwise._tool.surgery.precision.conversion import labels, to_low_precision
from layerwise._tool.surgery.precision.plan import LowType
from layerwise._tool.surgery.rewrite.ends import with_end_types
from layerwise._tool.surgery.rewrite.inlining import inlined
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
    wanted = spec.feeds if cached else planned(spec.feeds, structure.proto, context.warn, context.log, context.row)
    feeds = make_feeds(wanted, tensor_infos(fed), (lambda text: None) if cached else context.warn)
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


Tell = Callable[[str], None]
_FULL = ("float32", "fp32", "float")
_HALF: dict[str, LowType] = {"float16": "float16", "fp16": "float16", "half": "float16",
                             "bfloat16": "bfloat16", "bf16": "bfloat16"}  # fmt: skip
_TYPES = {
    "float32": onnx.TensorProto.FLOAT, "float": onnx.TensorProto.FLOAT, "fp32": onnx.TensorProto.FLOAT,
    "float16": onnx.TensorProto.FLOAT16, "half": onnx.TensorProto.FLOAT16, "fp16": onnx.TensorProto.FLOAT16,
    "bfloat16": onnx.TensorProto.BFLOAT16, "bf16": onnx.TensorProto.BFLOAT16, "int32": onnx.TensorProto.INT32,
    "int64": onnx.TensorProto.INT64, "uint8": onnx.TensorProto.UINT8, "bool": onnx.TensorProto.BOOL,
}  # fmt: skip
_FP8 = (onnx.TensorProto.FLOAT8E4M3FN, onnx.TensorProto.FLOAT8E5M2)


class _Quiet:
    """What `quantised` needs of a job. Its progress and its rows are not shown."""

    def __init__(self, artifacts: Path, tell: Tell) -> None:
        self.artifacts, self.log, self.warn = artifacts, tell, tell

    def progress(self, *counts: Any) -> None:
        """Ignore progress: the build shows its own."""

    def row(self, *row: Any) -> None:
        """Ignore rows: what inputs are planned is in the log."""


@contextmanager
def reduced(model: Loadable, options: TrtOptions, tell: Tell) -> Iterator[Loadable]:
    """Yield the model for TensorRT's parser; its files are removed at the end.

    INT8 nodes are surrounded by QuantizeLinear and DequantizeLinear, FP16 and bfloat16 nodes by casts;
    `layer_precisions` sets the type of nodes, `tensor_dtypes` that of inputs and outputs. UsageError for an unknown
    node, for FP8 if the model has none, and for a type that cannot be cast to.
    """
    config, structure = options.config, inlined(_structure(model))
    named = _there(structure, options)
    apart = labels(list(every_node(structure.nodes)), named, ()) if named else set()
    with temporary_folder() as folder:
        if config.fp8 and not _holds_fp8(structure):
            raise UsageError("--fp8: a strongly typed network has FP8 where the model has QuantizeLinear and "
                             "DequantizeLinear nodes of that type, and this model has none")  # fmt: skip
        if config.int8 and is_quantised(structure):
            tell("INT8: the model has quantisation nodes of its own; nothing is calibrated.")
        elif config.int8:
            context: Any = _Quiet(folder, tell)
            structure, _ = quantised(structure, _quantize_spec(config, tell), apart, context)
        low: LowType | None = "float16" if config.fp16 else "bfloat16" if config.bf16 else None
        if low is not None:
            keep = {name for name, kind in named.items() if kind.lower() in _FULL}
            nodes = list(every_node(structure.nodes))
            structure = _lowered(structure, low, labels(nodes, keep, ()) | _only_moved(nodes) - apart, tell)
        elif named:
            structure = _named_alone(structure, named, tell)
        structure = with_end_types(structure, _end_types(structure, options.network.tensor_dtypes, tell))
        path = folder / "reduced.onnx"
        save(structure, path, external=path.with_name("reduced.data"), overwrite=True)
        yield Loadable(data=path.read_bytes(), folder=path.parent)


_MOVES = frozenset({"Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Split", "Concat",
                    "Expand", "Tile", "Gather"})  # fmt: skip


def _only_moved(nodes: Sequence[onnx.NodeProto]) -> set[str]:
    """Return the labels of nodes that move data which no node computes with: a lower type would only round them."""
    groups: dict[str, str] = {}

    def group(name: str) -> str:
        while (above := groups.get(name, name)) != name:
            groups[name] = groups.get(above, above)
            name = above
        return name

    moving = [node for node in nodes if node.op_type in _MOVES and node.output]
    for node in moving:
        for name in filter(None, (*node.input, *node.output[1:])):
            groups[group(name)] = group(node.output[0])
    used = {group(name) for node in nodes if node.op_type not in _MOVES for name in (*node.input, *node.output)}
    return {node_label(node) for node in moving if group(node.output[0]) not in used}


def _holds_fp8(structure: Structure) -> bool:
    """Return whether any weight, zero point or attribute of a node has an FP8 type."""
    weights = any(tensor.data_type in _FP8 for tensor in structure.initializers.values())
    return weights or any(
        attribute.name in ("to", "output_dtype") and attribute.i in _FP8
        for node in every_node(structure.nodes)
        for attribute in node.attribute
    )


def _there(structure: Structure, options: TrtOptions) -> dict[str, str]:
    """Return the precisions requested for nodes, limited to those that a part of the model has."""
    named = options.network.layer_precisions
    if not options.part or not named:
        return named
    nodes, found = list(every_node(structure.nodes)), {}
    for name, kind in named.items():
        with suppress(UsageError):
            labels(nodes, [name], ())
            found[name] = kind
    return found


def _structure(model: Loadable) -> Structure:
    if model.data is None and model.path is not None:
        with ModelFile(model.path, str(model.folder) if model.folder else None) as file:
            return Structure.open(file)
    return Structure.from_proto(parse_model(model.read()), model.data_folder())


def _lowered(structure: Structure, low: LowType, keep: Collection[str], tell: Tell) -> Structure:
    done = to_low_precision(structure, low, keep, bodies=True)
    tell(f"Precision is written into the graph: {done.low} nodes are {low}, {done.kept} are kept in FP32, "
         f"{done.other} cannot be {low}.")  # fmt: skip
    return done.structure


def _named_alone(structure: Structure, named: dict[str, str], tell: Tell) -> Structure:
    """Convert only the named nodes."""
    for low in dict.fromkeys(_HALF.values()):
        wanted = [name for name, kind in named.items() if _HALF.get(kind.lower()) == low]
        if wanted:
            nodes = list(every_node(structure.nodes))
            keep = {node_label(node) for node in nodes} - labels(nodes, wanted, ())
            structure = _lowered(structure, low, keep, tell)
    return structure


def _end_types(structure: Structure, given: dict[str, str], tell: Tell) -> dict[str, int]:
    """Return the types requested for inputs and outputs; "" means every one that is not named."""
    fed = [value.name for value in structure.inputs if value.name not in structure.initializers]
    ends = [*fed, *(value.name for value in structure.outputs)]
    asked = (dict.fromkeys(ends, given[""]) if "" in given else {}) | {n: t for n, t in given.items() if n in ends}
    found = {name: _TYPES.get(kind.strip().lower().removeprefix("datatype.")) for name, kind in asked.items()}
    for name, kind in found.items():
        if kind is None:
            raise UsageError(f"--tensor-dtypes {shown(name, 80)}:{shown(asked[name], 40)}: in a strongly typed network "
                             f"the model's ends are cast, to one of {', '.join(_TYPES)}")  # fmt: skip
    if asked:
        told = ", ".join(f"{shown(name, 60)} {shown(asked[name], 20)}" for name in list(asked)[:8])
        tell(f"Types of inputs and outputs are written into the graph, with casts: {told}.")
    return {name: kind for name, kind in found.items() if kind is not None}


def _quantize_spec(config: ConfigOptions, tell: Tell) -> QuantizeSpec:
    if config.calibrator is not None and config.calibrator not in CALIBRATORS:
        raise UsageError(f"--calib-base-cls {shown(config.calibrator, 80)}: one of {', '.join(CALIBRATORS)}")
    method = CALIBRATORS[config.calibrator] if config.calibrator else "minmax"
    cache = config.calibration_cache
    if cache is not None and _of_tensorrt(Path(cache)):
        tell(f"{shown(cache)} is a cache of TensorRT 10's calibrators: it is not used, ranges are measured anew.")
        cache = None
    tell("INT8 is written into the graph as QuantizeLinear and DequantizeLinear nodes, ranges by onnxruntime "
         f"({method}).")  # fmt: skip
    percentile = 100 * config.quantile if config.quantile is not None and method == "percentile" else None
    for text in without_effect(config, "regression_cutoff", *(() if method == "percentile" else ("quantile",))):
        tell(text)
    return QuantizeSpec(
        feeds=config.calibration or FeedSpec(), method=method, percentile=percentile, cache=_usable(cache, tell)
    )


def _of_tensorrt(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(4) == b"TRT-"


def _usable(cache: str | None, tell: Tell) -> str | None:
    if cache is None or takes_caches():
        return cache
    tell("This onnxruntime has no calibration caches: the ranges are measured anew and not kept.")
    return None
