"""TensorRT: networks, configs, engines and the runner, for scripts. Loaders make things when called; each has a
function in lower case that makes it at once.

Everything is TensorRT's own object, so a script may change it between any two steps. Never run on a real TensorRT yet:
checked on its real Python bindings over stubs and on a fake that computes with onnxruntime.
"""

from layerwise.backend.trt.algorithm_selector import (
    Algorithm,
    TacticRecorder,
    TacticReplayData,
    TacticReplayer,
    TensorInfo,
)
from layerwise.backend.trt.calibrator import Calibrator
from layerwise.backend.trt.config import (
    CreateConfig,
    PostprocessConfig,
    create_config,
    postprocess_config,
)
from layerwise.backend.trt.engine import (
    BufferFromEngine,
    BytesFromEngine,
    EngineBytesFromNetwork,
    EngineFromBytes,
    EngineFromNetwork,
    EngineFromPath,
    LoadRuntime,
    SaveEngine,
    buffer_from_engine,
    bytes_from_engine,
    engine_bytes_from_network,
    engine_from_bytes,
    engine_from_network,
    engine_from_path,
    load_runtime,
    save_engine,
)
from layerwise.backend.trt.file_reader import FileReader
from layerwise.backend.trt.logger import get_trt_logger
from layerwise.backend.trt.network import (
    CreateNetwork,
    LoadPlugins,
    NetworkFromOnnxBytes,
    NetworkFromOnnxPath,
    create_network,
    load_plugins,
    network_from_onnx_bytes,
    network_from_onnx_path,
)
from layerwise.backend.trt.onnx_like import OnnxLikeFromNetwork, onnx_like_from_network
from layerwise.backend.trt.postprocess import (
    MarkDebug,
    ModifyNetworkOutputs,
    PostprocessNetwork,
    SetDecomposableAttentions,
    SetLayerPrecisions,
    SetTensorDatatypes,
    SetTensorFormats,
    mark_debug,
    modify_network_outputs,
    postprocess_network,
    set_decomposable_attentions,
    set_layer_precisions,
    set_tensor_datatypes,
    set_tensor_formats,
)
from layerwise.backend.trt.profile import Profile, ShapeTuple
from layerwise.backend.trt.runner import TrtRunner
from layerwise.mod.trt_importer import lazy_import_trt, tensorrt_module_and_version_string

__all__ = [
    "Algorithm",
    "BufferFromEngine",
    "BytesFromEngine",
    "Calibrator",
    "CreateConfig",
    "CreateNetwork",
    "EngineBytesFromNetwork",
    "EngineFromBytes",
    "EngineFromNetwork",
    "EngineFromPath",
    "FileReader",
    "LoadPlugins",
    "LoadRuntime",
    "MarkDebug",
    "ModifyNetworkOutputs",
    "NetworkFromOnnxBytes",
    "NetworkFromOnnxPath",
    "OnnxLikeFromNetwork",
    "PostprocessConfig",
    "PostprocessNetwork",
    "Profile",
    "SaveEngine",
    "SetDecomposableAttentions",
    "SetLayerPrecisions",
    "SetTensorDatatypes",
    "SetTensorFormats",
    "ShapeTuple",
    "TacticRecorder",
    "TacticReplayData",
    "TacticReplayer",
    "TensorInfo",
    "TrtRunner",
    "buffer_from_engine",
    "bytes_from_engine",
    "create_config",
    "create_network",
    "engine_bytes_from_network",
    "engine_from_bytes",
    "engine_from_network",
    "engine_from_path",
    "get_trt_logger",
    "lazy_import_trt",
    "load_plugins",
    "load_runtime",
    "mark_debug",
    "modify_network_outputs",
    "network_from_onnx_bytes",
    "network_from_onnx_path",
    "onnx_like_from_network",
    "postprocess_config",
    "postprocess_network",
    "save_engine",
    "set_decomposable_attentions",
    "set_layer_precisions",
    "set_tensor_datatypes",
    "set_tensor_formats",
    "tensorrt_module_and_version_string",
]
