"""Loading, marking and saving ONNX models."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise.backend.base import BaseLoader, Lazy, immediate, value_of
from layerwise.constants import MARK_ALL
from layerwise.logger import G_LOGGER

if TYPE_CHECKING:
    from onnx import ModelProto


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

        return load_model(self.path, self.external_data_dir, self.ignore_external_data)


class OnnxFromBytes(BaseLoader["ModelProto"]):
    """Parses a serialised model."""

    def __init__(self, serialized_onnx: Lazy[bytes]) -> None:
        self.data = serialized_onnx

    def call_impl(self) -> "ModelProto":
        from layerwise._tool.backends.model.protos import parse_model

        return parse_model(value_of(self.data))


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
        if self.external_data_path is None:
            with written_together(Path(self.path)) as new:
                onnx.save(model, new / Path(self.path).name)
            return model
        kept = onnx.ModelProto()
        kept.CopyFrom(model)
        write_onnx(kept, Path(self.path), self.external_data_path, self.size_threshold, self.one_file)
        return model


class InferShapes(BaseLoader["ModelProto"]):
    """Infers missing shapes; what cannot be inferred is left as it was."""

    def __init__(self, model: "Lazy[ModelProto]", error_ok: bool | None = None) -> None:
        self.model = model
        self.error_ok = error_ok is not False

    def call_impl(self) -> "ModelProto":
        from layerwise._tool.backends.model.protos import inferred

        model = value_of(self.model)
        return inferred(model, strict=not self.error_ok)


class ModifyOutputs(BaseLoader["ModelProto"]):
    """Marks other tensors as the outputs of a model.

    outputs: names and globs, or MARK_ALL; exclude_outputs: names and globs to unmark; mark_types: op types whose
    outputs are marked besides. copy: leave the model that was given as it is. keep_outputs: mark `outputs` besides the
    model's own instead of in their place.
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
        self.model = model
        self.outputs = outputs
        self.exclude_outputs = exclude_outputs
        self.copy = copy
        self.mark_types = mark_types
        self.keep_outputs = keep_outputs

    def call_impl(self) -> "ModelProto":
        import onnx

        from layerwise._tool.debugtools.compare.sides.save_model import set_outputs

        model = value_of(self.model)
        if self.copy:
            original, model = model, onnx.ModelProto()
            model.CopyFrom(original)
        set_outputs(model, self._names(model))
        return model

    def _names(self, model: "ModelProto") -> list[str]:
        tensors = [name for node in model.graph.node for name in node.output if name]
        names = [value.name for value in model.graph.output]
        if self.outputs == MARK_ALL:
            names = tensors
        elif self.outputs is not None:
            names = (names if self.keep_outputs else []) + _matching(self.outputs, tensors, must=True)
        if self.mark_types is not None:
            types = {kind.lower() for kind in self.mark_types}
            names += [
                name for node in model.graph.node if node.op_type.lower() in types for name in node.output if name
            ]
        left_out = set(_matching(self.exclude_outputs or [], names))
        return [name for name in dict.fromkeys(names) if name not in left_out]


def _matching(patterns: Sequence[str], tensors: Sequence[str], must: bool = False) -> list[str]:
    known = set(tensors)
    found: dict[str, None] = {}
    for pattern in patterns:
        hits = [pattern] if pattern in known else [name for name in tensors if fnmatchcase(name, pattern)]
        if must and not hits and any(char in pattern for char in "*?["):
            G_LOGGER.warning(f"No tensors matched wildcard pattern: '{shown(pattern, 120)}'")
        elif must and not hits:
            raise UsageError(f"the model has no tensor '{shown(pattern, 120)}' to mark as an output")
        found.update(dict.fromkeys(hits))
    return list(found)


class ConvertToFp16(BaseLoader["ModelProto"]):
    """Converts a model to FP16; inputs and outputs keep their types.

    keep: names of nodes (or their first outputs, or globs) that stay in FP32; keep_types: operators that do.
    """

    def __init__(
        self, model: "Lazy[ModelProto]", keep: Sequence[str] | None = None, keep_types: Sequence[str] | None = None
    ) -> None:
        self.model = model
        self.keep = keep or ()
        self.keep_types = keep_types or ()

    def call_impl(self) -> "ModelProto":
        from layerwise._tool.surgery.model.structure import Structure
        from layerwise._tool.surgery.precision.conversion import every_node, labels, to_low_precision
        from layerwise._tool.surgery.rewrite.inlining import inlined

        structure = inlined(Structure.from_proto(value_of(self.model)))
        kept = labels(list(every_node(structure.nodes)), self.keep, self.keep_types)
        return to_low_precision(structure, "float16", kept, bodies=True).structure.proto()


onnx_from_path = immediate(OnnxFromPath)
onnx_from_bytes = immediate(OnnxFromBytes)
bytes_from_onnx = immediate(BytesFromOnnx)
save_onnx = immediate(SaveOnnx)
infer_shapes = immediate(InferShapes)
modify_outputs = immediate(ModifyOutputs)
convert_to_fp16 = immediate(ConvertToFp16)
