"""Networks: empty ones, and of ONNX models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import BadFile, LayerwiseError
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.trt.building.network import creation_flags, parser_reasons, with_parser
from layerwise._tool.backends.trt.library import load_plugins as register
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.options import NetworkOptions
from layerwise.backend.base import BaseLoader, Lazy, immediate, value_of
from layerwise.backend.trt.logger import MESSAGES, get_trt_logger
from layerwise.exception import MissingFile

Parsed = tuple[Any, Any, Any]
"""Builder, network and parser."""


class LoadPlugins(BaseLoader[Any]):
    """Registers TensorRT's plugins and those of these libraries; then whatever `obj` is or loads."""

    def __init__(self, plugins: Sequence[str] | None = None, obj: Any = None) -> None:
        self.plugins = list(plugins or [])
        self.obj = obj

    def call_impl(self, *args: Any, **kwargs: Any) -> Any:
        try:
            register(tensorrt(), get_trt_logger(), self.plugins)
        except BadFile as error:  # scripts catch what ctypes raises
            raise MissingFile(error.path, error.reason) from None
        return self.obj(*args, **kwargs) if callable(self.obj) else self.obj


class CreateNetwork(BaseLoader[tuple[Any, Any]]):
    """An empty network: (builder, network). Networks have explicit batches; on TensorRT 11 they are strongly typed."""

    def __init__(
        self,
        explicit_batch: bool | None = None,
        strongly_typed: bool | None = None,
        mark_unfused_tensors_as_debug_tensors: bool | None = None,
    ) -> None:
        self.strongly_typed = bool(strongly_typed)
        self.mark_unfused = bool(mark_unfused_tensors_as_debug_tensors)

    def call_impl(self) -> tuple[Any, Any]:
        trt = tensorrt()
        builder = trt.Builder(get_trt_logger())
        network = builder.create_network(creation_flags(trt, strongly_typed=self.strongly_typed))
        if self.mark_unfused:
            network.mark_unfused_tensors_as_debug_tensors()
        return builder, network


class BaseNetworkFromOnnx(BaseLoader[Parsed]):
    """flags: of `trt.OnnxParserFlag`. plugin_instancenorm: InstanceNormalization by TensorRT's plugin. config: a
    builder config, or a loader of one that takes (builder, network), which the parser heeds.
    enable_uint8_asymmetric_quantization_dla: one of the flags, by its older name.
    """

    def __init__(
        self,
        flags: Sequence[Any] | None = None,
        plugin_instancenorm: bool | None = None,
        strongly_typed: bool | None = None,
        mark_unfused_tensors_as_debug_tensors: bool | None = None,
        enable_uint8_asymmetric_quantization_dla: bool | None = None,
        config: Any = None,
    ) -> None:
        names = [getattr(flag, "name", str(flag)) for flag in flags or ()]
        if enable_uint8_asymmetric_quantization_dla:
            names = [name for name in names if name != "NATIVE_INSTANCENORM"]
            names.append("ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA")
        self.flags = flags
        self.config = config
        self.mark_unfused = bool(mark_unfused_tensors_as_debug_tensors)
        self.options = NetworkOptions(
            strongly_typed=bool(strongly_typed),
            onnx_flags=list(dict.fromkeys(names)),
            plugin_instancenorm=bool(plugin_instancenorm),
        )

    def model(self) -> Loadable:
        """The ONNX model."""
        raise NotImplementedError

    def call_impl(self) -> Parsed:
        return self.parse(self.model())

    def parse(self, model: Loadable) -> Parsed:
        """Builder, network and parser of a model. LayerwiseError names node, operator and reason."""
        trt, logger = tensorrt(), get_trt_logger()
        register(trt, logger, [])
        made = with_parser(trt, logger, self.options, strongly_typed=self.options.strongly_typed)
        self._configure(made.builder, made.parser)
        if not made.parser.parse(model.read(), path=model.beside()):
            raise LayerwiseError(f"TensorRT's parser refuses the model: {parser_reasons(made.parser, MESSAGES)}")
        if self.mark_unfused:
            made.network.mark_unfused_tensors_as_debug_tensors()
        return made.builder, made.network, made.parser

    def _configure(self, builder: Any, parser: Any) -> None:
        if self.config is None:
            return
        config = self.config(builder, network=None) if callable(self.config) else self.config
        if not parser.set_builder_config(config):
            raise LayerwiseError("Failed to set builder config on ONNX parser")


class NetworkFromOnnxBytes(BaseNetworkFromOnnx):
    """The network of a serialised ONNX model: (builder, network, parser)."""

    def __init__(
        self,
        model_bytes: Lazy[bytes],
        flags: Sequence[Any] | None = None,
        plugin_instancenorm: bool | None = None,
        strongly_typed: bool | None = None,
        mark_unfused_tensors_as_debug_tensors: bool | None = None,
        enable_uint8_asymmetric_quantization_dla: bool | None = None,
        config: Any = None,
    ) -> None:
        super().__init__(
            flags, plugin_instancenorm, strongly_typed, mark_unfused_tensors_as_debug_tensors,
            enable_uint8_asymmetric_quantization_dla, config,
        )  # fmt: skip
        self.model_bytes = model_bytes

    def model(self) -> Loadable:
        return Loadable(data=value_of(self.model_bytes))


class NetworkFromOnnxPath(BaseNetworkFromOnnx):
    """The network of an ONNX file, whose external data lies beside it: (builder, network, parser)."""

    def __init__(
        self,
        path: Lazy[str],
        flags: Sequence[Any] | None = None,
        plugin_instancenorm: bool | None = None,
        strongly_typed: bool | None = None,
        mark_unfused_tensors_as_debug_tensors: bool | None = None,
        enable_uint8_asymmetric_quantization_dla: bool | None = None,
        config: Any = None,
    ) -> None:
        super().__init__(
            flags, plugin_instancenorm, strongly_typed, mark_unfused_tensors_as_debug_tensors,
            enable_uint8_asymmetric_quantization_dla, config,
        )  # fmt: skip
        self.path = path

    def model(self) -> Loadable:
        return Loadable(path=Path(value_of(self.path)))


load_plugins = immediate(LoadPlugins)
create_network = immediate(CreateNetwork)
network_from_onnx_bytes = immediate(NetworkFromOnnxBytes)
network_from_onnx_path = immediate(NetworkFromOnnxPath)
