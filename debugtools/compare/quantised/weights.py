"""The values of a graph's weights and constants, wherever the file has them."""

from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from layerwise._tool.backends.arrays import Array

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut


class Weights:
    """Called with a name, gives an initializer's value. folder: where external data are."""

    def __init__(self, cut: "GraphCut", folder: Path) -> None:
        self._cut, self._folder = cut, folder

    def __call__(self, name: str) -> Array:
        return self.tensor(self._cut.initializers[name])

    def tensor(self, tensor: onnx.TensorProto) -> Array:
        """The value of any tensor of the graph. BadFile if it is damaged."""
        from layerwise._tool.backends.reference.evaluate import tensor_array  # it imports all reference operators

        return tensor_array(tensor, self._folder)
