"""Going through one side's graph, unfused, every tensor once."""

from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing

import msgspec

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.align.graph import AlignGraph
from layerwise._tool.debugtools.align.onnx_graph import weight_arrays
from layerwise._tool.debugtools.align.side_data import SideData, collect
from layerwise._tool.debugtools.compare.aligning.graphs import digest, structure
from layerwise._tool.debugtools.compare.observing.run_ahead import Ahead, segment_size
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.sides.stream import GraphStream, SessionPool


def streamed(side: ModelSide, feed: Feed, limit: int, names: Collection[str] | None = None) -> Iterator[Feed]:
    """Give the tensors `names` (the side's own; None: all) of a side's model segment by segment, by its own names.

    feed: as the side takes it. limit: bytes of a segment. What a TensorRT side computes is computed by onnxruntime
    here: each part would be an engine to build.
    """
    cut = side.model.cut
    known = cut.estimates_for(feed)
    wanted = [name for name in (cut.maker if names is None else names) if not (name in known and known[name].opaque)]
    spec = side.spec
    if spec.kind not in ("onnxrt", "reference", "pluginref", "torch"):
        spec = RunnerSpec(kind="onnxrt", model=spec.model)
    plan = cut.segments(wanted, limit, known)
    chosen = frozenset(wanted)
    with closing(SessionPool(keep=False)) as pool:
        folder = side.model.file.folder
        for made in GraphStream(cut, plan, msgspec.structs.replace(spec, name=""), side.name, folder, feed, pool):
            yield {name: array for name, array in made.items() if name in chosen}


def side_data(side: ModelSide, graph: AlignGraph, fed: Feed, segments: Iterator[Feed], ahead: int) -> SideData:
    """The fingerprints of a side's inputs, weights and tensors. ahead: bytes of segments that may wait for them, made
    in a thread meanwhile.
    """
    with ExitStack() as stack:
        made = stack.enter_context(Ahead(segments, ahead, segment_size)) if ahead else segments

        def tensors() -> Iterator[tuple[str, Array]]:
            yield from fed.items()
            yield from weight_arrays(side.model.file, structure(side))
            for segment in made:
                yield from segment.items()

        return collect(graph, tensors(), digest(graph))
