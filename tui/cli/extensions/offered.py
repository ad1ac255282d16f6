"""The groups of options that extension modules of `run`, and tools over the API, may rest on, by name."""

from typing import Any

from layerwise._tool.tui.cli.extensions import of_compare, of_onnx, of_run, of_trt
from layerwise._tool.tui.cli.extensions.groups import BaseArgs
from layerwise._tool.tui.cli.extensions.of_onnx import OnnxSaveArgs
from layerwise._tool.tui.cli.extensions.of_run import OfRun
from layerwise._tool.tui.cli.extensions.of_trt import TrtLoadEngineBytesArgs, TrtSaveEngineBytesArgs

OFFERED: dict[str, type[Any]] = {
    name: kind
    for module in (of_run, of_onnx, of_trt, of_compare)
    for name, kind in vars(module).items()
    if name.endswith("Args") and isinstance(kind, type) and issubclass(kind, OfRun)
}


def of_run_groups() -> list[BaseArgs]:
    """One of each, as `run` has them."""
    special = {
        "OnnxSaveArgs": OnnxSaveArgs(output_opt="save-onnx", output_short_opt=False),
        "TrtSaveEngineBytesArgs": TrtSaveEngineBytesArgs(output_opt="save-engine", output_short_opt=False),
        "TrtLoadEngineBytesArgs": TrtLoadEngineBytesArgs(allow_saving=True),
    }
    return [special.get(name) or kind() for name, kind in OFFERED.items()]
