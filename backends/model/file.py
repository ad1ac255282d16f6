"""A model on disk, opened once: structure and weights separately, both read lazily."""

import hashlib
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import open_regular
from layerwise._tool.backends.model.protos import all_tensors, parse_model
from layerwise._tool.backends.model.structure import Cutter, External, TensorRecord, WeightRef, external_file, has_graph
from layerwise._tool.backends.model.wire import Source, WireError, pread_all
from layerwise._tool.backends.text import shown

if TYPE_CHECKING:
    import onnx
    from numpy.typing import NDArray
    from typing_extensions import Self

_PROTOBUF_LIMIT = (1 << 31) - 1
_FEW = 1 << 14  # bytes that are sooner read than mapped


class ModelFile:
    """An ONNX model on disk. Weights of 1 KiB and more are read only by `array`.

    folder: every external location in `structure` is relative to it; pass it to onnxruntime as
    `session.model_external_initializers_file_folder_path`. It is the model's own (links in its path
    resolved), or the nearest folder above both the model and the external data if they are in different ones.
    BadFile: missing, not a regular file, not ONNX, external data missing or outside its folder.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        external_data_dir: str | None = None,
        ignore_external_data: bool = False,
    ) -> None:
        self.path = Path(path)
        self.ignore_external_data = ignore_external_data
        self._fd = open_regular(self.path)
        self.real_path = self.path.resolve()
        self.size = os.fstat(self._fd).st_size
        self.data_folder = Path(external_data_dir or self.path.parent).resolve()
        self.folder = Path(os.path.commonpath([self.real_path.parent, self.data_folder]))
        try:
            if not has_graph(Source(self._fd)):
                raise BadFile(self.path, "not an ONNX model: there is no graph in it")
        except WireError as error:
            self.close()
            raise BadFile(self.path, f"not an ONNX model: {error}") from error
        except BadFile:
            self.close()
            raise

    def close(self) -> None:
        """Close the file. Arrays that were returned stay valid."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            self.close()

    # Structure

    def structure_bytes(self) -> bytes:
        """Return a serialised ModelProto; weights of 1 KiB and more are external references into `folder`."""
        return self._cut[0]

    def structure(self) -> "onnx.ModelProto":
        """Return `structure_bytes` parsed; a new object on each call. BadFile if onnx cannot parse it."""
        return parse_model(self.structure_bytes(), self.path)

    def structure_key(self) -> str:
        """Return a hash (hex) of the structure and the locations of its weights. Reads no weights."""
        return hashlib.blake2b(self.structure_bytes(), digest_size=20).hexdigest()

    @cached_property
    def _cut(self) -> tuple[bytes, list[TensorRecord], list[TensorRecord]]:
        source = Source(self._fd)
        cutter = Cutter(source, self._place)
        try:
            structure = cutter.structure()
        except WireError as error:
            raise BadFile(self.path, f"damaged ONNX model: {error}") from error
        if len(structure) > _PROTOBUF_LIMIT:
            raise BadFile(self.path, "over 2 GB apart from raw weights: save its weights as external data")
        return structure, cutter.tensors, cutter.others

    def _place(self, tensor: TensorRecord) -> External | None:
        if tensor.external is None:
            assert tensor.data is not None
            start, end = tensor.data
            return External(self._own_location, start, end - start)
        if self.ignore_external_data:
            return None
        file, nbytes = self._external_file(tensor)
        return External(self._location(file), tensor.external.offset, nbytes)

    @cached_property
    def _own_location(self) -> str:
        return self._location(self.real_path)

    def _location(self, file: Path) -> str:
        location = file.relative_to(self.folder).as_posix()
        if not location.isprintable():  # no engine takes it, and protobuf wants UTF-8
            raise BadFile(self.path, f"rename {shown(location)!r}: its name is not plain text")
        return location

    def _external_file(self, tensor: TensorRecord) -> tuple[Path, int]:
        assert tensor.external is not None
        return external_file(self.path, self.data_folder, tensor.name, tensor.external)

    # Weights

    @cached_property
    def _tensors(self) -> dict[str, TensorRecord]:
        _, main, others = self._cut
        return {t.name: t for t in reversed([*main, *others]) if t.name}

    @cached_property
    def _weights(self) -> dict[str, WeightRef]:
        _, main, others = self._cut
        return {t.name: self._ref(self._tensors[t.name]) for t in [*main, *others] if t.name}

    def weights(self) -> Mapping[str, WeightRef]:
        """Return all initializers by name: the main graph's in file order, then those of subgraphs.

        Subgraph initializers under 1 KiB are not listed. A duplicate name means its first occurrence.
        """
        return self._weights

    def external_files(self) -> set[Path]:
        """Return the files of external data of all tensors, those without a name in Constant nodes too.

        BadFile if one is not there.
        """
        _, main, others = self._cut
        return {self._external_file(tensor)[0] for tensor in [*main, *others] if tensor.external is not None}

    def array(self, name: str) -> "NDArray[Any]":
        """Return the values of one initializer, read-only; memory-mapped if they are many and stored unchanged.

        BadFile if the model has no such initializer, or its values do not match its shape and type.
        """
        from layerwise._tool.backends.model.weight_arrays import mapped_array, parsed_array, raw_array

        tensor = self._tensors.get(name)
        if tensor is None:
            raise BadFile(self.path, f"there is no initializer {shown(name, 200)!r}")
        ref = self._ref(tensor)
        if ref.offset < 0:
            return parsed_array(self.path, name, pread_all(self._fd, tensor.start, tensor.end - tensor.start))
        if ref.nbytes <= _FEW and ref.file == self.real_path and self._fd >= 0:
            data = pread_all(self._fd, ref.offset, ref.nbytes)
            if len(data) == ref.nbytes:
                return raw_array(self.path, ref, data)
        return mapped_array(self.path, ref)

    def _ref(self, tensor: TensorRecord) -> WeightRef:
        file, offset, nbytes = self.real_path, -1, 0
        if tensor.data is not None:
            offset, nbytes = tensor.data[0], tensor.data[1] - tensor.data[0]
        elif tensor.external is not None and not self.ignore_external_data:
            file, nbytes = self._external_file(tensor)
            offset = tensor.external.offset
        return WeightRef(tensor.name, tensor.dtype, tuple(tensor.dims), file, offset, nbytes)


def load_model(
    source: str | os.PathLike[str] | bytes,
    external_data_dir: str | None = None,
    ignore_external_data: bool = False,
) -> "onnx.ModelProto":
    """Return the whole model with all weights in memory (also over 2 GB).

    Raises BadFile like ModelFile. External data of a model given as bytes is not loaded.
    """
    if isinstance(source, bytes):
        return parse_model(source)
    with ModelFile(source, external_data_dir, ignore_external_data) as file:
        model = file.structure()
        for tensor in all_tensors(model):
            if tensor.data_location == tensor.EXTERNAL and not ignore_external_data:
                _fill(tensor, file.folder)
        return model


def _fill(tensor: "onnx.TensorProto", folder: Path) -> None:
    place = {entry.key: entry.value for entry in tensor.external_data}
    fd = open_regular(folder / place["location"])
    try:
        tensor.raw_data = pread_all(fd, int(place["offset"]), int(place["length"]))
    finally:
        os.close(fd)
    del tensor.external_data[:]
    tensor.ClearField("data_location")
