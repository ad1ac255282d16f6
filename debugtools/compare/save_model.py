"""Saving the model as a comparison runs it: with the marked tensors as its outputs."""

from collections.abc import Sequence
from pathlib import Path

import onnx

from backends.errors import LayerwiseError, UsageError
from backends.folders import written_together
from backends.model import ModelFile, load_model
from backends.private import make_folder
from backends.text import shown
from debugtools.compare.marks import any_marks, marked_tensors
from debugtools.compare.spec import CompareSpec
from surgery.cut import GraphCut
from surgery.graph.infer import inferred_structure
from surgery.wire_pieces import THRESHOLD


def save_model(spec: CompareSpec) -> None:
    """Write `spec.model` to `model_options.save_onnx`, its weights beside it if `save_external_data` is not None.

    UsageError without a model; BadFile as `load_model` raises it; LayerwiseError where the file cannot be written.
    """
    options = spec.model_options
    if options.save_onnx is None:
        return
    if spec.model is None:
        raise UsageError("--save-onnx needs a model")
    model = load_model(spec.model, options.external_data_dir, options.ignore_external_data)
    if any_marks(spec.marks):
        set_outputs(model, marked_tensors(spec.marks, GraphCut(model)), _types(spec.model))
    path = Path(options.save_onnx)
    try:
        make_folder(path.parent)
        write_onnx(model, path, options.save_external_data, options.external_data_size_threshold)
    except (OSError, ValueError) as error:
        raise LayerwiseError(f"--save-onnx {shown(str(path))}: {shown(str(error), 300)}") from None


def _types(path: str) -> list[onnx.ValueInfoProto]:
    """What shape inference says of the tensors, weights not read."""
    with ModelFile(path) as file:
        inferred = onnx.ModelProto.FromString(inferred_structure(file.structure_bytes())[0])
    return list(inferred.graph.value_info)


def set_outputs(model: onnx.ModelProto, names: list[str], types: Sequence[onnx.ValueInfoProto] = ()) -> None:
    """Give a model of one's own these outputs; what it does not declare of them may be among `types`."""
    known = {value.name: value for value in [*types, *model.graph.value_info, *model.graph.output]}
    values = [known.get(name) or onnx.helper.make_empty_tensor_value_info(name) for name in names]
    chosen = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in values]
    del model.graph.output[:]
    model.graph.output.extend(chosen)


def write_onnx(
    model: onnx.ModelProto, path: Path, external: str | None, threshold: int | None, one_file: bool = True
) -> None:
    """Write a model, whole or not at all; over 2 GB it always keeps its weights outside.

    external: file beside it for weights of `threshold` bytes and more ("" for a default name), or one file for each of
    them, named after it. The model refers to what is outside from then on. OSError, ValueError.
    """
    with written_together(path) as new:
        if external is None and model.ByteSize() < onnx.checker.MAXIMUM_PROTOBUF:
            onnx.save(model, new / path.name)
            return
        onnx.save(
            model,
            new / path.name,
            save_as_external_data=True,
            all_tensors_to_one_file=one_file,
            location=Path(external or f"{path.name}.data").name,
            size_threshold=THRESHOLD if threshold is None else threshold,
        )
