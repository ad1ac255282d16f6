"""Groups of options for extension modules of `layerwise run`, and for command-line tools over the API."""

from layerwise._tool.tui.cli.extensions.groups import BaseArgs, BaseRunnerArgs, not_offered
from layerwise._tool.tui.cli.extensions.of_compare import (
    ComparatorCompareArgs,
    ComparatorPostprocessArgs,
    ComparatorRunArgs,
    CompareFuncCosineSimilarityArgs,
    CompareFuncIndicesArgs,
    CompareFuncL2Args,
    CompareFuncPerceptualMetricsArgs,
    CompareFuncPsnrArgs,
    CompareFuncSimpleArgs,
    CompareFuncSnrArgs,
)
from layerwise._tool.tui.cli.extensions.of_onnx import (
    OnnxInferShapesArgs,
    OnnxLoadArgs,
    OnnxrtRunnerArgs,
    OnnxrtSessionArgs,
    OnnxSaveArgs,
    PluginRefRunnerArgs,
)
from layerwise._tool.tui.cli.extensions.of_run import DataLoaderArgs, LoggerArgs, ModelArgs, RunnerSelectArgs
from layerwise._tool.tui.cli.extensions.of_trt import (
    TrtConfigArgs,
    TrtLoadEngineArgs,
    TrtLoadEngineBytesArgs,
    TrtLoadNetworkArgs,
    TrtLoadPluginsArgs,
    TrtOnnxFlagArgs,
    TrtRunnerArgs,
    TrtSaveEngineBytesArgs,
)

__all__ = [
    "BaseArgs", "BaseRunnerArgs", "ComparatorCompareArgs", "ComparatorPostprocessArgs", "ComparatorRunArgs",
    "CompareFuncCosineSimilarityArgs", "CompareFuncIndicesArgs", "CompareFuncL2Args",
    "CompareFuncPerceptualMetricsArgs", "CompareFuncPsnrArgs", "CompareFuncSimpleArgs", "CompareFuncSnrArgs",
    "DataLoaderArgs", "LoggerArgs", "ModelArgs", "OnnxInferShapesArgs", "OnnxLoadArgs", "OnnxSaveArgs",
    "OnnxrtRunnerArgs", "OnnxrtSessionArgs", "PluginRefRunnerArgs", "RunnerSelectArgs", "TrtConfigArgs",
    "TrtLoadEngineArgs", "TrtLoadEngineBytesArgs", "TrtLoadNetworkArgs", "TrtLoadPluginsArgs", "TrtOnnxFlagArgs",
    "TrtRunnerArgs", "TrtSaveEngineBytesArgs",
]  # fmt: skip


def __getattr__(name: str) -> type[BaseArgs]:
    if not name.endswith("Args"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return not_offered(name)
