"""One model with many choices of precision, with the common work done once.

Types are inferred once, and the low form of every weight is written once, to a file that all choices refer to; the
original weights stay in their file, which gets a second link (or are copied, if that is impossible). A
choice is then a rewritten graph of a few hundred KB, independent of the size of the weights.
"""

import os
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto

from layerwise._tool.backends.filesystem.temporary import note
from layerwise._tool.backends.model.protos import all_tensors
from layerwise._tool.surgery.model.structure import node_label
from layerwise._tool.surgery.precision.nodes import Rewrite, rounded
from layerwise._tool.surgery.precision.plan import ONNX_TYPE, LowType, PrecisionPlan
from layerwise._tool.surgery.saving.streamed import embed, is_external, place
from layerwise._tool.surgery.types.node_types import FLOAT

Bytes = NDArray[np.uint8]
_ALIGN = 64
_FILE = "weights.bin"


class Lowering:
    """model: a structure whose external weights are in `source`; folder: where those of all choices go.

    emulate: FP32 nodes between Cast round trips instead of nodes of the low type, as in `surgery.precision.nodes`.
    labels: the nodes that can be low, in graph order. LayerwiseError as in `convert_precision`; OSError.
    """

    def __init__(self, model: onnx.ModelProto, source: Path, low: LowType, folder: Path, *, emulate: bool) -> None:
        self._low, self._emulate, self.folder = low, emulate, folder
        self._plan = PrecisionPlan.of(model, low, ())
        self._forms: dict[str, TensorProto] = {}
        self._links: dict[str, str | None] = {}
        self._model = onnx.ModelProto()
        self._model.CopyFrom(model)
        nodes = zip(model.graph.node, self._plan.slots, strict=True)
        self.labels = list(dict.fromkeys(node_label(node) for node, slots in nodes if slots))
        folder.mkdir(parents=True, exist_ok=True)
        self._move_weights(source)

    def model(self, keep: Collection[str]) -> onnx.ModelProto:
        """Return the model with the nodes in `keep` in FP32, its weights external in `folder`."""
        plan = self._plan.keeping(self._model.graph, keep)
        return Rewrite(self._model, self._low, plan, self.folder, emulate=self._emulate, forms=self._forms).result()

    def close(self) -> None:
        """Remove the weights."""
        for name in (_FILE, *filter(None, self._links.values())):
            (self.folder / name).unlink(missing_ok=True)

    def _move_weights(self, source: Path) -> None:
        weights = list(self._model.graph.initializer)
        del self._model.graph.initializer[:]
        fill(self._model, source)  # weights of bodies and attributes
        note(self.folder / _FILE)
        with (self.folder / _FILE).open("wb") as stream:
            for tensor in weights:
                if is_external(tensor):
                    self._move(tensor, source, stream)
        self._model.graph.initializer.extend(weights)

    def _move(self, tensor: TensorProto, source: Path, stream: BinaryIO) -> None:
        data = _data(tensor, source)
        if tensor.data_type == FLOAT and tensor.name in self._plan.needs_low:
            form = TensorProto(name=tensor.name, dims=tensor.dims, data_location=TensorProto.EXTERNAL)
            form.data_type = FLOAT if self._emulate else ONNX_TYPE[self._low]
            low = rounded(data.view("<f4"), self._low, emulate=self._emulate)
            _write(form, low.view(np.uint8), stream)
            self._forms[tensor.name] = form
        location, offset, _ = place(tensor)
        linked = self._link(source, location)
        if linked is None:
            _write(tensor, data, stream)
        else:
            _refer(tensor, linked, offset, data.nbytes)

    def _link(self, source: Path, location: str) -> str | None:
        """Hard-link a weights file into `folder`; None if the file system cannot."""
        if location not in self._links:
            name = f"source{len(self._links)}.bin"
            note(self.folder / name)
            (self.folder / name).unlink(missing_ok=True)
            try:
                os.link((source / location).resolve(), self.folder / name)
                self._links[location] = name
            except OSError:
                self._links[location] = None
        return self._links[location]


def fill(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """Embed the weights of `model` that are in `folder`; returns the same object."""
    for tensor in filter(is_external, all_tensors(model)):
        embed(tensor, folder)
    return model


def _data(tensor: TensorProto, folder: Path) -> Bytes:
    location, offset, length = place(tensor)
    return np.memmap(folder / location, np.uint8, "r", offset, (length,)) if length else np.zeros(0, np.uint8)


def _write(tensor: TensorProto, data: Bytes, stream: BinaryIO) -> None:
    """Append a tensor's bytes to the file and make the tensor refer to them."""
    stream.write(b"\0" * (-stream.tell() % _ALIGN))
    _refer(tensor, _FILE, stream.tell(), data.nbytes)
    stream.write(data.data)


def _refer(tensor: TensorProto, location: str, offset: int, length: int) -> None:
    del tensor.external_data[:]
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)
