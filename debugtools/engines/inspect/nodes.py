"""Maps the nodes of an ONNX model to engine layers: by names, by tensors, and, if TensorRT renamed both, by values,
which takes one run of the engine and of the model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.inspect.engine import EngineView
from layerwise._tool.backends.trt.inspect.layers import EngineLayer
from layerwise._tool.backends.trt.options import TrtOptions, to_dict
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.engines.node_map.layers import Mapped, map_layers
from layerwise._tool.debugtools.engines.node_map.trace import EngineTrace
from layerwise._tool.surgery.model.structure import node_label

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_HELD = 1 << 30  # bytes of tensors held in memory
_TOLD = {"name": "", "tensor": " (by its tensors)", "value": " (by its values)", "": ""}


@dataclass(frozen=True)
class NodeMap:
    """A model's nodes by name and the layers of an engine, each in order."""

    names: list[str]
    layers: list[Mapped]

    def told(self, layers: Sequence[EngineLayer]) -> list[EngineLayer]:
        """Return the layers, each with the nodes that it computes."""
        found = {mapped.layer: [self.names[at] for at in mapped.nodes] for mapped in self.layers}
        return [replace(layer, nodes=found.get(layer.name) or layer.nodes) for layer in layers]

    def of_nodes(self) -> dict[str, list[Mapped]]:
        """Return the layers that compute each node; none if it was folded away, or unknown."""
        found: dict[str, list[Mapped]] = {name: [] for name in self.names}
        for mapped in self.layers:
            for at in mapped.nodes:
                found[self.names[at]].append(mapped)
        return found

    def lines(self) -> Iterator[str]:
        """Yield the lines of the table, with unmapped nodes last."""
        found = self.of_nodes()
        without = [name for name, layers in found.items() if not layers]
        yield f"---- {len(found)} ONNX Node(s), {len(without)} without a layer ----"
        for name, layers in found.items():
            if layers:
                told = ", ".join(f"{mapped.layer}{_TOLD[mapped.by]}" for mapped in layers)
                yield f"{shown(name, 200)} -> {shown(told, 400)}"
        yield from (f"{shown(name, 200)} -> none" for name in without)

    def document(self) -> dict[str, Any]:
        """Return the same as JSON."""
        return {
            name: [{"layer": mapped.layer, "by": mapped.by} for mapped in layers]
            for name, layers in self.of_nodes().items()
        }


def node_map(path: str, view: EngineView, options: TrtOptions, context: "JobContext") -> NodeMap:
    """Map the layers of an engine to the nodes of the ONNX model at `path`. options: for loading the engine.

    If names leave layers and nodes unmapped, the engine is run; warns if that does not help. BadFile if `path` is not a
    model.
    """
    model = Model(path, ModelOptions())
    layers = list({layer.name: layer for found in view.layers for layer in found}.values())
    mapped = map_layers(layers, model.cut, {})
    done = {at for each in mapped for at in each.nodes}
    if view.detailed and len(done) < len(model.cut.nodes) and any(not each.by for each in mapped):
        mapped = _by_values(model, view, options, context) or mapped
    return NodeMap([node_label(node) for node in model.cut.nodes], mapped)


def _by_values(model: Model, view: EngineView, options: TrtOptions, context: "JobContext") -> list[Mapped]:
    """Return the nodes of the layers as found by a run; an empty list if that fails."""
    side = ModelSide(0, RunnerSpec(kind="trt", options=to_dict(options)), "the engine", {}, model)
    trace = EngineTrace(side, context.artifacts / "inner", _HELD)
    context.log("Some layers have names and tensors of TensorRT's own: the engine is run, to know them by their values")
    try:
        shapes = {span.name: [list(span.opt)] for span in view.profiles[0].inputs if not span.values}
        inputs = [tensor.info() for tensor in view.tensors if tensor.is_input]
        trace.begin(next(iter(make_feeds(FeedSpec(shapes=shapes), inputs, context.log))))
    except LayerwiseError as error:
        context.warn(f"It cannot be run: {error}")
        return []
    finally:
        trace.close()
    if not trace.by_value:
        context.warn("The run showed no tensor that is known by its values: engines built with "
                     "--mark-unfused-tensors-as-debug-tensors show theirs")  # fmt: skip
    return trace.layers
