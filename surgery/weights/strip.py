"""Removes the values of a model's weights, and replaces them with random ones.

Which weights lose their values is as in Polygraphy's `surgeon weight-strip` (0.53), for TensorRT's refitting: those of
Conv, ConvTranspose, Gemm, MatMul, Gather and Slice, directly, through a Transpose or through QuantizeLinear and
DequantizeLinear, and those of operators unknown to ONNX. A stripped one has TRT_WEIGHTLESS in its
doc string, and SPARSE_2_4 if it was sparse. Unlike there, the weight of a Conv counts through a Transpose too.
"""

from collections.abc import Collection, Iterator

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.backends.tensors import onnx_to_numpy
from layerwise._tool.surgery.model.structure import Structure, changed
from layerwise._tool.surgery.weights.sparsity import candidates, is_sparse, pruned

MARK, SPARSE = "TRT_WEIGHTLESS", "SPARSE_2_4"
_READ = {"Conv": None, "ConvTranspose": None, "Gemm": None, "MatMul": None, "Gather": None, "Slice": (0,)}
_LEAST = {"Gather": 1024, "Slice": 1024}
_LEAST_OF_PLUGIN = 1024
_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")


def stripped(model: Structure, exclude: Collection[str] = ()) -> tuple[Structure, list[str]]:
    """Return the model without the values of its strippable weights, and their names; those in `exclude` stay."""
    names = [name for name in dict.fromkeys(_strippable(model)) if name not in exclude]
    sparse = _sparse(model, names)
    weights = dict(model.initializers)
    for name in names:
        old = weights[name]
        weights[name] = TensorProto(name=name, data_type=old.data_type, dims=old.dims)
        weights[name].doc_string = f"{MARK}/{SPARSE if name in sparse else ''}"
    if not names:
        return model, []
    doc = "-".join(filter(None, [model.rest.doc_string, MARK]))
    return model.with_(initializers=weights, rest=changed(model.rest, doc_string=doc)), names


def reconstructed(model: Structure, seed: int = 0) -> tuple[Structure, list[str]]:
    """Return the model with random weights (normal, from `seed`) where values were stripped, and their names.

    Those that were 2:4 sparse are so again.
    """
    random = np.random.default_rng(seed)
    axes = {product.weight: product.axis for product in candidates(model.nodes, model.initializers).eligible}
    weights, names = dict(model.initializers), []
    for name, old in model.initializers.items():
        if MARK not in old.doc_string or _has_values(old):
            continue
        array = random.standard_normal(tuple(old.dims), np.float32).astype(onnx_to_numpy(old.data_type))
        if SPARSE in old.doc_string and name in axes:
            array = pruned(array, axes[name])
        weights[name] = numpy_helper.from_array(array, name)
        weights[name].doc_string = old.doc_string
        names.append(name)
    return model.with_(initializers=weights), names


def _has_values(tensor: TensorProto) -> bool:
    data = tensor.data_location == tensor.EXTERNAL or tensor.raw_data or tensor.float_data or tensor.int32_data
    return bool(data or tensor.int64_data or tensor.double_data or tensor.uint64_data or 0 in tensor.dims)


def _sparse(model: Structure, names: Collection[str]) -> set[str]:
    return {
        weight
        for weight, axis in candidates(model.nodes, model.initializers).eligible
        if weight in names and is_sparse(tensor_array(model.initializers[weight], model.folder), axis)
    }


def _strippable(model: Structure) -> Iterator[str]:
    for node in model.nodes:
        places: tuple[int, ...] | None = ()
        least = _LEAST.get(node.op_type, 1)
        if node.op_type in _READ:
            places = _READ[node.op_type]
        elif (node.op_type == "Transpose" and _feeds(model, node)) or _is_quantised(model, node):
            places = (0,)
        elif not onnx.defs.has(node.op_type):
            places, least = None, _LEAST_OF_PLUGIN
        for i, name in enumerate(node.input):
            weight = model.initializers.get(name)
            if weight is None or (places is not None and i not in places) or weight.data_type == TensorProto.UINT8:
                continue
            if np.prod(weight.dims, dtype=float) >= least:
                yield name


def _feeds(model: Structure, node: onnx.NodeProto) -> bool:
    """Return whether a product reads the node's output."""
    return any(reader.op_type in _PRODUCTS for reader in model.lookups.readers.get(node.output[0], ()))


def _is_quantised(model: Structure, node: onnx.NodeProto) -> bool:
    """Return whether the node quantises what a product reads through a DequantizeLinear."""
    if node.op_type != "QuantizeLinear":
        return False
    readers = model.lookups.readers.get(node.output[0], ())
    return any(reader.op_type == "DequantizeLinear" and _feeds(model, reader) for reader in readers)
