"""Going through one side's graph, unfused, every tensor once."""

from collections.abc import Collection, Iterator
from contextlib import closing

import msgspec

from layerwise._tool.backends.arrays import Feed
from layerwise._tool.backends.specs import RunnerSpec
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
