"""Changing a network before it is built: outputs, precisions, types and formats."""

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from layerwise._tool.backends.trt.building.network import made_by, mark_outputs
from layerwise._tool.backends.trt.building.typing import set_types
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.options import NetworkOptions, TrtOptions
from layerwise.backend.base import BaseLoader, Lazy, immediate, value_of
from layerwise.backend.trt import networks
from layerwise.backend.trt.logger import tell
from layerwise.constants import MARK_ALL
from layerwise.logger import G_LOGGER

Network = tuple[Any, ...]
"""Builder, network and perhaps parser."""


class PostprocessNetwork(BaseLoader[Network]):
    """Calls `func(network=…)` on a network and returns what the loader of the network does."""

    def __init__(self, network: Lazy[Network], func: Callable[..., Any], name: str | None = None) -> None:
        if not callable(func):
            G_LOGGER.critical(f"Object {func} (of type {type(func)}) is not a callable.")
        self.network = network
        self.func = func
        self.name = getattr(func, "__name__", str(func)) if name is None else name

    def call_impl(self) -> Network:
        made = value_of(self.network)
        self.func(network=made[1])
        return made


class ModifyNetworkOutputs(PostprocessNetwork):
    """Makes other tensors the outputs of a network.

    outputs: names and patterns, or MARK_ALL; exclude_outputs: such that are none; mark_layer_types: `trt.LayerType`s or
    their names, the outputs of such layers.
    """

    def __init__(
        self,
        network: Lazy[Network],
        outputs: Sequence[str] | str | None = None,
        exclude_outputs: Sequence[str] | None = None,
        mark_layer_types: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(network, self._mark, "ModifyNetworkOutputs")
        self.outputs = outputs
        self.exclude_outputs = list(exclude_outputs or [])
        self.types = list(mark_layer_types or [])

    def _mark(self, network: Any) -> None:
        known = list(networks.get_all_tensors(network) | networks.get_all_io_tensors(network))
        wanted = ["*"] if self.outputs == MARK_ALL else _expanded(self.outputs or [], known)
        typed = made_by(tensorrt(), network, [_name(kind) for kind in self.types])
        mark_outputs(network, wanted, _expanded(self.exclude_outputs, known), typed)


def _expanded(names: Sequence[str], known: Sequence[str]) -> list[str]:
    found = {
        name: None for text in names for name in ([text] if text in known else fnmatch.filter(known, text) or [text])
    }
    return list(found)


class SetLayerPrecisions(PostprocessNetwork):
    """Sets the precision that layers compute in: layer name -> `trt.DataType`. TensorRT 10, weakly typed networks."""

    def __init__(self, network: Lazy[Network], layer_precisions: Mapping[str, Any]) -> None:
        super().__init__(network, _setter(layer_precisions={n: _name(v) for n, v in layer_precisions.items()}))


class SetTensorDatatypes(PostprocessNetwork):
    """Sets types of inputs and outputs: name -> `trt.DataType`, or one for all. On TensorRT 11 nothing can be set."""

    def __init__(self, network: Lazy[Network], tensor_datatypes: Any) -> None:
        types = tensor_datatypes if isinstance(tensor_datatypes, Mapping) else {"": tensor_datatypes}
        super().__init__(network, _setter(tensor_dtypes={name: _name(value) for name, value in types.items()}))


class SetTensorFormats(PostprocessNetwork):
    """Sets the formats that inputs and outputs may have: name -> list of `trt.TensorFormat`, or one list for all."""

    def __init__(self, network: Lazy[Network], tensor_formats: Any) -> None:
        given = tensor_formats if isinstance(tensor_formats, Mapping) else {"": tensor_formats}
        super().__init__(network, _setter(tensor_formats={n: [_name(v) for v in some] for n, some in given.items()}))


class SetDecomposableAttentions(PostprocessNetwork):
    """Lets TensorRT take attentions apart where it has no kernel for them as a whole."""

    def __init__(self, network: Lazy[Network]) -> None:
        super().__init__(network, self._set, "SetDecomposableAttentions")

    def _set(self, network: Any) -> None:
        trt = tensorrt()
        kind = getattr(trt.LayerType, "ATTENTION_INPUT", None)
        for layer in (network.get_layer(index) for index in range(network.num_layers)):
            if kind is not None and layer.type == kind:
                layer.__class__ = trt.IAttentionInputLayer
                layer.attention.decomposable = True


class MarkDebug(PostprocessNetwork):
    """Marks tensors that a debug listener hears of."""

    def __init__(self, network: Lazy[Network], mark_debug: Sequence[str]) -> None:
        super().__init__(network, _setter(mark_debug=list(mark_debug)))


def _setter(**options: Any) -> Callable[[Any], None]:
    wanted = TrtOptions(network=NetworkOptions(**options))
    return lambda network: set_types(tensorrt(), network, wanted, tell)


def _name(enumerator: Any) -> str:
    return str(getattr(enumerator, "name", enumerator))


postprocess_network = immediate(PostprocessNetwork)
modify_network_outputs = immediate(ModifyNetworkOutputs)
set_layer_precisions = immediate(SetLayerPrecisions)
set_tensor_datatypes = immediate(SetTensorDatatypes)
set_tensor_formats = immediate(SetTensorFormats)
mark_debug = immediate(MarkDebug)
set_decomposable_attentions = immediate(SetDecomposableAttentions)
