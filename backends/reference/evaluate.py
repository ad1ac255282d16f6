"""Evaluates a model node by node with ONNX's reference operators, freeing tensors that are no longer needed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import onnx
from onnx.external_data_helper import ExternalDataInfo
from onnx.reference import ReferenceEvaluator

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import BadFile, LayerwiseError, raise_scarce
from layerwise._tool.backends.model.expansion import check_functions
from layerwise._tool.backends.model.protos import dims_of
from layerwise._tool.backends.model.reads import reads
from layerwise._tool.backends.reference.mended_ops import MENDED_OPS
from layerwise._tool.backends.tensors import TensorInfo, dtype_name, dtype_row, onnx_to_numpy, packed_nbytes
from layerwise._tool.backends.text import shown


class Evaluation:
    """A parsed model whose operators are ready to run. Every tensor of the main graph can be requested.

    FP16 and bfloat16 operators compute in their own type; onnxruntime on the CPU computes them in FP32.
    """

    def __init__(self, model: onnx.ModelProto, folder: Path | None, new_ops: Sequence[type] = ()) -> None:
        self.graph = model.graph
        evaluator = type("_Evaluator", (_ReferenceEvaluator,), {"folder": folder})
        if model.functions:
            check_functions(model.SerializeToString())
        try:
            ops = [*new_ops, *MENDED_OPS]  # of two with one name the first is taken
            self._evaluator = evaluator(_constants_read(model, folder), new_ops=ops)
        except LayerwiseError:
            raise
        except Exception as error:  # operators may raise anything
            raise_scarce(error)
            raise LayerwiseError(f"the ONNX reference evaluator cannot take this model: {_reason(error)}") from None
        self._nodes: list[Any] = self._evaluator.rt_nodes_
        self._reads = [frozenset(reads(node.onnx_node)) for node in self._nodes]

    def run(self, feed: Mapping[str, Array], names: Sequence[str]) -> dict[str, Any]:
        """Evaluate what `names` need. LayerwiseError names the node that failed."""
        results: dict[str, Any] = {"": None, **self._evaluator.rt_inits_, **feed}
        wanted = self._needed(names)
        last = {name: i for i in wanted for name in self._reads[i]}
        keep = set(names)
        for i in wanted:
            results.update(self._run_node(self._nodes[i], results))
            for name in [*self._reads[i], *self._nodes[i].output]:
                if name and name not in keep and last.get(name, -1) <= i:
                    results.pop(name, None)
        missing = [name for name in names if name not in results]
        if missing:
            raise LayerwiseError(f"the model makes no tensor {shown(missing[0], 120)!r}")
        return {name: results[name] for name in names}

    def tensors(self) -> set[str]:
        """Return the names of all tensors that `run` can compute."""
        made = {name for node in self._nodes for name in node.output if name}
        return made | set(self._evaluator.rt_inits_) | {value.name for value in self.graph.input}

    def _needed(self, names: Sequence[str]) -> list[int]:
        """Return the positions of the nodes that `names` depend on, in graph order."""
        need, chosen = set(names), []
        for i in range(len(self._nodes) - 1, -1, -1):
            if need.intersection(self._nodes[i].output):
                chosen.append(i)
                need |= self._reads[i]
        return chosen[::-1]

    def _run_node(self, node: Any, results: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        context = {"context": dict(results)} if node.need_context() else {}
        try:
            with np.errstate(all="ignore"):
                values = node.run(*(results[name] for name in node.input), **context)
        except Exception as error:  # operators may raise anything
            raise_scarce(error)
            proto = node.onnx_node
            label = proto.name or (proto.output[0] if proto.output else "")
            raise LayerwiseError(
                f"node {shown(label, 200)!r} ({shown(proto.op_type, 60)}) failed in the reference evaluator: "
                f"{_reason(error)}"
            ) from None
        return zip(node.output, values, strict=False)


class _ReferenceEvaluator(ReferenceEvaluator):
    """Reads external weights in place; subgraph bodies are evaluated by the same class."""

    folder: Path | None = None

    def retrieve_external_data(self, initializer: onnx.TensorProto) -> Array:
        return external_array(initializer, self.folder)


def _constants_read(model: onnx.ModelProto, folder: Path | None) -> onnx.ModelProto:
    """The model with the values of its Constant nodes in it: onnx's evaluator looks for files in the working folder."""
    if not any(_outside(node) for node in model.graph.node):
        return model
    found = onnx.ModelProto()
    found.CopyFrom(model)
    for node in found.graph.node:
        for attribute in _outside(node):
            values = external_array(attribute.t, folder)
            kind, dims = attribute.t.data_type, attribute.t.dims
            data = values.astype(values.dtype.newbyteorder("<")).tobytes()
            attribute.t.CopyFrom(onnx.TensorProto(data_type=kind, dims=dims, raw_data=data))
    return found


def _outside(node: onnx.NodeProto) -> list[onnx.AttributeProto]:
    return [each for each in node.attribute if each.t.data_location == onnx.TensorProto.EXTERNAL]


def tensor_array(tensor: onnx.TensorProto, folder: Path | None = None) -> Array:
    """Return a tensor's values, embedded or external (then under `folder`). BadFile if they are damaged."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return external_array(tensor, folder)
    try:
        return np.asarray(onnx.numpy_helper.to_array(tensor))
    except Exception as error:  # ValueError, TypeError, or what ml_dtypes raises
        raise BadFile(shown(tensor.name or "a tensor", 200), f"its values are damaged: {_reason(error)}") from None


def external_array(tensor: onnx.TensorProto, folder: Path | None) -> Array:
    """Return a tensor's external data, memory-mapped read-only. BadFile if it is incomplete.

    Its location must be under `folder`.
    """
    info = ExternalDataInfo(tensor)
    place = PurePosixPath(info.location)
    if folder is None or place.is_absolute() or ".." in place.parts:
        raise BadFile(shown(info.location), f"external data of {shown(tensor.name)!r} is outside the model's folder")
    dtype, shape = onnx_to_numpy(tensor.data_type), tuple(tensor.dims)
    row = dtype_row(dtype_name(dtype))
    if any(dim < 0 for dim in shape):
        raise BadFile(shown(tensor.name or "a tensor", 200), f"its shape {list(shape)} is none")
    size = packed_nbytes(row.name, shape)
    offset = info.offset or 0
    path = folder / info.location
    if not path.is_file():
        raise BadFile(path, f"external data of {shown(tensor.name)!r} is missing")
    if path.stat().st_size < offset + size:
        raise BadFile(path, f"external data of {shown(tensor.name)!r} ends before its {size} bytes at {offset}")
    data = np.memmap(path, np.uint8, "r", offset, (size,)) if size else np.zeros(0, np.uint8)
    if row.bits >= 8:
        return np.asarray(data).view(dtype).reshape(shape)
    whole = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=shape, raw_data=data.tobytes())
    return np.asarray(onnx.numpy_helper.to_array(whole))


def tensor_infos(values: Iterable[onnx.ValueInfoProto]) -> list[TensorInfo]:
    """Return names, types and shapes of graph inputs or outputs; the type of a sequence is "sequence"."""
    return [_tensor_info(value) for value in values]


def _tensor_info(value: onnx.ValueInfoProto) -> TensorInfo:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        return TensorInfo(value.name, (kind or "unknown").removesuffix("_type"), None)
    tensor = value.type.tensor_type
    shape = tuple(dims_of(value)) if tensor.HasField("shape") else None
    return TensorInfo(value.name, dtype_name(tensor.elem_type), shape)


def _reason(error: Exception) -> str:
    cause = error.__cause__ or error
    return shown(" ".join(str(cause).split()) or type(cause).__name__, 400)
