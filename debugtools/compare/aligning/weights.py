"""Fingerprints of models' weights: of what several models hold bit for bit, one."""

import math
from collections.abc import Container

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.align.fingerprint import Fingerprint, fingerprint
from layerwise._tool.debugtools.align.onnx_graph import weight_arrays
from layerwise._tool.debugtools.compare.observing.canary import same_bits
from layerwise._tool.surgery.model.structure import Structure

_FEW = 16  # elements
_LARGE = 1 << 16  # elements: of fewer a fingerprint is quickly made
_SAMPLES = 64
_Key = tuple[str, tuple[int, ...], bytes]


class WeightPrints:
    """Remembers where the large weights of the models lie that it has seen, not their values."""

    def __init__(self) -> None:
        self._seen: dict[_Key, tuple[ModelFile, str, Fingerprint]] = {}

    def small(self, model: ModelFile, structure: Structure) -> dict[str, Fingerprint]:
        """The fingerprints of a model's scalars, shapes and the like; what cannot be read is left out."""
        names = [name for name, tensor in structure.initializers.items() if math.prod(tensor.dims) <= _FEW]
        return {name: fingerprint(array) for name, array in weight_arrays(model, names)}

    def of(self, model: ModelFile, structure: Structure, known: Container[str]) -> dict[str, Fingerprint]:
        """The fingerprints of a model's weights but of those that are known; what cannot be read is left out."""
        names = [name for name in structure.initializers if name not in known]
        return {name: self._of(model, name, array) for name, array in weight_arrays(model, names)}

    def _of(self, model: ModelFile, name: str, array: Array) -> Fingerprint:
        if array.size < _LARGE:
            return fingerprint(array)
        key = dtype_name(array), array.shape, array.reshape(-1)[:: array.size // _SAMPLES].tobytes()
        file, there, known = self._seen.get(key, (None, "", None))
        if file is not None and known is not None and same_bits(array, file.array(there)):
            return known
        found = fingerprint(array)
        self._seen.setdefault(key, (model, name, found))
        return found
