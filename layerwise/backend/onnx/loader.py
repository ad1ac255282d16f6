"""Loading, marking and saving ONNX models."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.text import shown
from layerwise.backend.base import BaseLoader, Lazy, immediate, value_of
from layerwise.backend.onnx import util
from layerwise.backend.onnx.changes import ConvertToFp16, FoldConstants, convert_to_fp16, fold_constants
from layerwise.backend.onnx.graphs import (
    BaseLoadOnnxCopy,
    ExtractSubgraph,
    GsFromOnnx,
    SetUpperBound,
    extract_subgraph,
    gs_from_onnx,
    set_upper_bound,
)
from layerwise.backend.onnx.tf import OnnxFromTfGraph, onnx_from_tf_graph
from layerwise.constants import MARK_ALL
from layerwise.logger import G_LOGGER, LogMode
from layerwise.util.files import check_there

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = [
    "LARGE_MODEL_THRESHOLD",
    "PROTOBUF_THRESHOLD",
    "BaseLoadOnnxCopy",
    "BytesFromOnnx",
    "ConvertToFp16",
    "ExtractSubgraph",
    "FoldConstants",
    "GsFromOnnx",
    "InferShapes",
    "ModifyOutputs",
    "OnnxFromBytes",
    "OnnxFromPath",
    "OnnxFromTfGraph",
    "SaveOnnx",
    "SetUpperBound",
    "bytes_from_onnx",
    "convert_to_fp16",
    "extract_subgraph",
    "fold_constants",
    "gs_from_onnx",
    "infer_shapes",
    "modify_outputs",
    "onnx_from_bytes",
    "onnx_from_path",
    "onnx_from_tf_graph",
    "save_onnx",
    "set_upper_bound",
]  # fmt: skip

LARGE_MODEL_THRESHOLD = 512 << 20
"""Bytes of a model whose shapes take long to infer."""
PROTOBUF_THRESHOLD = 2e9
"""Bytes of a model whose weights are always saved in a file of their own."""


@cache
def _damaged_model() -> type[BadFile]:
    from google.protobuf.message import DecodeError

    class DamagedModel(BadFile, DecodeError):  # type: ignore[misc]  # protobuf has no types
        """A file that cannot be parsed; what Polygraphy's scripts catch as protobuf's own error."""

    return DamagedModel


@contextmanager
def _damage() -> Iterator[None]:
    """A BadFile that cannot be parsed is a DamagedModel."""
    try:
        yield
    except BadFile as error:
        from google.protobuf.message import DecodeError

        from layerwise._tool.backends.model.wire import WireError

        if isinstance(error.__cause__, DecodeError | WireError):
            raise _damaged_model()(error.path, error.reason) from error.__cause__
        raise


class OnnxFromPath(BaseLoader["ModelProto"]):
    """Reads a model; external data comes from its own folder or from `external_data_dir`."""

    def __init__(
        self, path: str, external_data_dir: str | None = None, ignore_external_data: bool | None = None
    ) -> None:
        self.path = path
        self.external_data_dir = external_data_dir
        self.ignore_external_data = bool(ignore_external_data)

    def call_impl(self) -> "ModelProto":
        from layerwise._tool.backends.model.file import load_model

        check_there(self.path)
        G_LOGGER.info(f"Loading model: {shown(self.path)}")
        with _damage():
            return load_model(self.path, self.external_data_dir, self.ignore_external_data)


class OnnxFromBytes(BaseLoader["ModelProto"]):
    """Parses a serialised model."""

    def __init__(self, serialized_onnx: Lazy[bytes]) -> None:
        self.data = serialized_onnx

    def call_impl(self) -> "ModelProto":
        from layerwise._tool.backends.model.protos import parse_model

        data = value_of(self.data)
        with _damage():
            return parse_model(data)


class BytesFromOnnx(BaseLoader[bytes]):
    """Serialises a model."""

    def __init__(self, model: "Lazy[ModelProto]") -> None:
        self.model = model

    def call_impl(self) -> bytes:
        data: bytes = value_of(self.model).SerializeToString()
        return data


class SaveOnnx(BaseLoader["ModelProto"]):
    """Writes a model and returns it.

    external_data_path: file beside it for its weights ("" for a default name).
    size_threshold: bytes; smaller ones stay inside.
    """

    def __init__(
        self,
        model: "Lazy[ModelProto]",
        path: str,
        external_data_path: str | None = None,
        size_threshold: int | None = None,
        all_tensors_to_one_file: bool | None = None,
    ) -> None:
        self.model = model
        self.path = path
        self.external_data_path = external_data_path
        self.size_threshold = 1024 if size_threshold is None else size_threshold
        self.one_file = all_tensors_to_one_file is not False

    def call_impl(self) -> "ModelProto":
        import onnx

        from layerwise._tool.backends.filesystem.folders import written_together
        from layerwise._tool.debugtools.compare.sides.save_model import write_onnx

        model = value_of(self.model)
        G_LOGGER.info(f"Saving ONNX model to: {shown(self.path)}")
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        if self.external_data_path is None and model.ByteSize() < PROTOBUF_THRESHOLD:
            with written_together(Path(self.path)) as new:
                onnx.save(model, new / Path(self.path).name)
            return model
        kept = onnx.ModelProto()
        kept.CopyFrom(model)
        write_onnx(kept, Path(self.path), self.external_data_path or "", self.size_threshold, self.one_file)
        return model


class InferShapes(BaseLoader["ModelProto"]):
    """Infers missing shapes and types of a model, or of a file at a path.

    error_ok: what cannot be inferred is left as it was, with a warning. external_data_dir: of a file at a path.
    save_to_disk_threshold_bytes and allow_onnxruntime are accepted: onnx infers, with values that shapes depend on, and
    without the weights, so that no size needs the disk.
    """

    def __init__(
        self,
        model: "Lazy[ModelProto | str]",
        error_ok: bool | None = None,
        external_data_dir: str | None = None,
        save_to_disk_threshold_bytes: float | None = None,
        allow_onnxruntime: bool | None = None,
    ) -> None:
        self.model = model
        self.error_ok = error_ok is not False
        self.external_data_dir = external_data_dir
        large = PROTOBUF_THRESHOLD if save_to_disk_threshold_bytes is None else save_to_disk_threshold_bytes
        self.save_to_disk_threshold_bytes = large
        self.allow_onnxruntime = allow_onnxruntime is not False

    def call_impl(self) -> "ModelProto":
        from layerwise._tool.surgery.model.structure import Structure
        from layerwise._tool.surgery.types.shapes import with_shapes

        model = value_of(self.model)
        if isinstance(model, str | Path):
            model = OnnxFromPath(str(model), self.external_data_dir)()
        if not self.error_ok:
            from layerwise._tool.backends.model.protos import inferred

            return inferred(model, strict=False, values=True)
        found, warnings = with_shapes(Structure.from_proto(model))
        for text in warnings:
            G_LOGGER.warning(text, LogMode.ONCE)
        return found.proto()


class ModifyOutputs(BaseLoadOnnxCopy):
    """Marks other tensors as the outputs of a model.

    outputs: names and globs, or MARK_ALL; mark_types: op types, whose outputs take the place of all others;
    exclude_outputs: names and globs to unmark. copy: leave the model that was given as it is. keep_outputs: mark
    `outputs` and those of `mark_types` besides the model's own instead of in their place.
    """

    def __init__(
        self,
        model: "Lazy[ModelProto]",
        outputs: Sequence[str] | str | None = None,
        exclude_outputs: Sequence[str] | None = None,
        copy: bool | None = None,
        mark_types: Sequence[str] | None = None,
        keep_outputs: bool | None = None,
    ) -> None:
        super().__init__(model, copy)
        self.outputs = outputs
        self.exclude_outputs = exclude_outputs
        self.mark_types = mark_types
        self.keep_outputs = keep_outputs

    def call_impl(self) -> "ModelProto":
        model = self.load()
        own = util.output_names(model) if self.keep_outputs else []
        if self.outputs == MARK_ALL:
            model = util.mark_layerwise(model)
        elif self.outputs is not None:
            model = util.mark_outputs(model, [*own, *self.outputs])
        if self.mark_types is not None:
            before = util.output_names(model) if self.keep_outputs else []
            model = util.mark_by_op_type(model, self.mark_types)
            model = util.mark_outputs(model, [*before, *util.output_names(model)]) if before else model
        return model if self.exclude_outputs is None else util.unmark_outputs(model, self.exclude_outputs)


onnx_from_path = immediate(OnnxFromPath)
onnx_from_bytes = immediate(OnnxFromBytes)
bytes_from_onnx = immediate(BytesFromOnnx)
save_onnx = immediate(SaveOnnx)
infer_shapes = immediate(InferShapes)
modify_outputs = immediate(ModifyOutputs)
