"""Measures types and shapes of tensors by running the model, where inference does not know them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.sources import Warn, make_feeds
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.reference.evaluate import tensor_infos
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.backends.tensors import TensorInfo, dtype_name
from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.feeds.planned import planned
from layerwise._tool.surgery.model.structure import Structure

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def shapes_of_a_run(
    model: Structure, feeds: FeedSpec, names: Sequence[str] | None, warn: Warn
) -> dict[str, TensorInfo]:
    """Return types and shapes of `names` (None: all tensors that nodes make) in one run with the first feed.

    Non-tensors are omitted. Loads onnxruntime: only for a process that may crash.
    """
    from layerwise._tool.backends.onnxrt.runner import open_onnxrt

    whole = model.proto()
    for node in whole.graph.node:
        node.name = ""  # onnxruntime requires different ones
    cut = GraphCut(whole)
    wanted = [name for name in cut.maker if names is None or name in set(names)]
    data = cut.with_outputs(wanted or cut.outputs)
    given = [value for value in model.inputs if value.name in cut.inputs]
    feeds = planned(feeds, lambda: whole, warn)
    feed = next(iter(make_feeds(feeds, tensor_infos(given), warn)), None)
    if feed is None:
        raise UsageError("there is no feed dict to run the model with")
    spec = RunnerSpec(kind="onnxrt", graph_optimization_level="disable")
    with open_onnxrt(spec, Loadable(data=data, folder=model.folder), name="fallback shape inference") as runner:
        outputs = {**feed, **runner.infer(feed).outputs}
    return {name: TensorInfo(name, dtype_name(array), tuple(array.shape)) for name, array in outputs.items()}


def run_shapes(context: "JobContext") -> dict[str, Any]:
    """The job action `run_shapes`. params: path, names, feeds (a FeedSpec); external_data_dir.

    Each tensor is a row of the table tensors: a `TensorInfo`.
    """
    params = context.params
    feeds = msgspec.convert(params["feeds"], FeedSpec)
    with ModelFile(params["path"], params.get("external_data_dir")) as file:
        model = Structure.open(file)
        feeds = planned(feeds, model.proto, context.warn, context.log, context.row)
        found = shapes_of_a_run(model, feeds, params["names"], context.warn)
    for info in found.values():
        context.row("tensors", info)
    return {"tensors": len(found)}
