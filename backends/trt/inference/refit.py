"""Weights of a stripped engine, put back from the ONNX model that it was built of."""

from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.inference.engine import Engine


def restore_weights(trt: Any, engine: Engine, model: Loadable, tell: Any) -> None:
    """Refit an engine that lacks weights from `model`; any other is left as it is.

    LayerwiseError where there is no model to take them from, or it does not have them.
    """
    if not engine.engine.refittable:
        return
    refitter = trt.Refitter(engine.engine, engine.logger)
    missing = refitter.get_missing_weights()
    if not missing:
        return
    if model.data is None and (model.path is None or model.path.suffix.lower() != ".onnx"):
        raise LayerwiseError(
            f"the engine was built with --strip-plan and lacks {len(missing)} weight(s) ({shown(missing[0], 60)}, …): "
            "give the ONNX model that it was built of as well (run MODEL.onnx --trt-engine ENGINE)"
        )
    engine.messages.reason("")
    beside = str((model.data_folder() or Path()) / "model.onnx")
    parser = trt.OnnxParserRefitter(refitter, engine.logger)
    if not parser.refit_from_bytes(model.read(), beside) or not refitter.refit_cuda_engine():
        raise LayerwiseError(f"the engine cannot be refitted: {shown(engine.messages.reason('it says no more'), 500)}")
    tell(f"{len(missing)} weight(s) that the engine lacked are taken from the model.")
