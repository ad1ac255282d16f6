"""What two surgeons made of one model, run and counted."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.reference.evaluate import tensor_infos
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.rewrite.tidy import count_nodes

Feed = dict[str, Any]


def feed_of(path: Path) -> Feed:
    """A synthetic feed for a model."""
    graph = Structure.from_proto(onnx.load(path, load_external_data=False))
    infos = tensor_infos([value for value in graph.inputs if value.name in graph.input_names])
    return dict(next(iter(make_feeds(FeedSpec(), infos, lambda text: None))))


def outputs_of(path: Path, feed: Feed) -> list[Any]:
    """What onnxruntime computes, its optimisations off; node names, which need not differ, are left out."""
    model = onnx.load(path)
    for node in model.graph.node:
        node.name = ""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = {value.name for value in (*session.get_inputs(), *session.get_overridable_initializers())}
    outputs: list[Any] = session.run(None, {name: array for name, array in feed.items() if name in names})
    return outputs


def same(ours: list[Any], theirs: list[Any]) -> bool:
    """Whether two lists of outputs are equal within what the order of additions may change."""
    return len(ours) == len(theirs) and all(map(_close, ours, theirs))


def nodes_in(path: Path) -> int:
    """Nodes of a model, those in bodies included."""
    return count_nodes(onnx.load(path, load_external_data=False).graph)


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, list) or isinstance(b, list):
        return same(a, b)
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(np.allclose(a, b, 1e-4, 1e-5, equal_nan=True)) if a.dtype.kind in "fiub" else bool((a == b).all())
