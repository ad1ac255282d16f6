"""A map that a comparison saved, as pairs of tensors of two models."""

from pathlib import Path

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.debugtools.align.alignment import AlignedPair
from layerwise._tool.debugtools.align.file import fitting_map, load_map
from layerwise._tool.debugtools.align.onnx_graph import onnx_graph
from layerwise._tool.debugtools.compare.aligning.graphs import digest
from layerwise._tool.surgery.model.structure import Structure


def map_pairs(path: Path, models: tuple[ModelFile, ModelFile]) -> list[AlignedPair]:
    """The pairs of a map that a comparison saved. BadFile if it is none, UsageError if it is of other models."""
    first, second = (onnx_graph(Structure.from_proto(file.structure(), file.folder)) for file in models)
    found = fitting_map(path, load_map(path), (first, second), (digest(first), digest(second)))
    return found.alignment.pairs
