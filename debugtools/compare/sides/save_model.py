"""The model as a comparison runs it: converted to FP16 first; saved, with the marked tensors as its outputs."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import onnx

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.folders import written_together
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.filesystem.temporary import note
from layerwise._tool.backends.model.file import ModelFile, load_model
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words
from layerwise._tool.debugtools.compare.sides.marks import any_marks, outputs_of_file
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.saving.model import own_names
from layerwise._tool.surgery.types.infer import inferred_structure
from layerwise._tool.surgery.wire.pieces import THRESHOLD


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
        set_outputs(model, outputs_of_file(spec.marks, GraphCut(model)), _types(spec.model))
    path = Path(options.save_onnx)
    try:
        make_folder(path.parent)
        write_onnx(
            model, path, options.save_external_data, options.external_data_size_threshold, not options.external_each
        )
    except (OSError, ValueError) as error:
        raise LayerwiseError(f"--save-onnx {shown(str(path))}: {in_words(error)}") from None


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
    them, named after it. The model refers to what is outside from then on. OSError, ValueError, LayerwiseError.
    """
    with written_together(path) as new:
        if external is None and model.ByteSize() < onnx.checker.MAXIMUM_PROTOBUF:
            onnx.save(model, new / path.name)
            return
        location = Path(external or f"{path.name}.data").name
        _put_outside(model, path, location if one_file else None, THRESHOLD if threshold is None else threshold)
        try:
            onnx.save(model, new / path.name)
        except onnx.checker.ValidationError as error:  # where native code cannot open the file of weights
            raise LayerwiseError(f"{shown(str(path))} cannot be written: {in_words(error)}") from None


def _put_outside(model: onnx.ModelProto, path: Path, location: str | None, threshold: int) -> None:
    """Let weights of `threshold` bytes and more refer to a file that `onnx.save` writes; None: each to one of its own.

    onnx's own function refuses a name that is taken in the current folder, which need not be where it writes.
    """
    chosen = [
        tensor for tensor in model.graph.initializer
        if tensor.HasField("raw_data") and sys.getsizeof(tensor.raw_data) >= threshold
    ]  # fmt: skip
    names = [location] * len(chosen) if location else own_names([tensor.name for tensor in chosen], path.name)
    for tensor, name in zip(chosen, names, strict=True):
        onnx.external_data_helper.set_external_data(tensor, name)


@contextmanager
def converted(spec: CompareSpec, folder: Path) -> Iterator[CompareSpec]:
    """The same comparison of the model in FP16, which lies in `folder` meanwhile; another side's own model stays.

    UsageError without a model; LayerwiseError where it cannot be converted.
    """
    from layerwise._tool.surgery.precision.conversion import in_half

    options = spec.model_options
    if spec.model is None:
        raise UsageError("--fp-to-fp16 needs a model")
    note(folder)
    try:
        with ModelFile(spec.model, options.external_data_dir, options.ignore_external_data) as model:
            path = in_half(model, folder)
        plain = msgspec.structs.replace(options, fp16=False, external_data_dir=None, ignore_external_data=False)
        yield msgspec.structs.replace(spec, model=str(path), model_options=plain)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
