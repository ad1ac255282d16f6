"""A check of the open model's invariants: the runner and the inputs of the comparison on view, or of the Run form."""

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.checks.invariants.spec import InvariantsSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.controllers.opening import is_engine
from layerwise._tool.tui.state.shared import AppState

_RUNS = ("onnxrt", "reference", "pluginref", "trt")


def invariants_spec(app: AppState, compare: CompareSpec | None) -> InvariantsSpec:
    """What to check. compare: the comparison on view, or that of the Run form. UsageError where no model is open."""
    model = app.session.model
    if model is None or is_engine(model):
        raise UsageError("invariants are those of an ONNX model: open one")
    compare = compare or CompareSpec()
    runner = next((side for side in compare.runners if side.kind in _RUNS), RunnerSpec(kind="onnxrt"))
    feeds = compare.feeds
    own = FeedSpec(seed=feeds.seed, val_range=feeds.val_range, shapes=feeds.shapes, files=feeds.files,
                   script=feeds.script, function=feeds.function)  # fmt: skip
    return InvariantsSpec(
        model=str(model), model_options=msgspec.structs.replace(compare.model_options, fp16=False, save_onnx=None),
        runner=msgspec.structs.replace(runner, model=None), feeds=own,
    )  # fmt: skip
