"""Runners of extension modules of `run`: a script makes them, they have the methods of Polygraphy's runners."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Loadable, RunnerBase, check_names
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import TensorInfo, dtype_name
from layerwise._tool.backends.text import shown


class ExtensionRunner(RunnerBase):
    """runner: with activate, infer, get_input_metadata, last_inference_time, deactivate. It loads its model itself.

    outputs: what the ONNX model declares; what the runner gives besides is left out.
    """

    def __init__(self, spec: RunnerSpec, runner: Any, outputs: list[str], name: str) -> None:
        self.spec, self.name, self.outputs = spec, name, outputs
        self._runner: Any = None
        runner.activate()
        self._runner = runner
        metadata = runner.get_input_metadata(use_numpy_dtypes=False)
        self.inputs = [TensorInfo(each, _type(row.dtype), _shape(row.shape)) for each, row in metadata.items()]

    def infer(self, feed: Mapping[str, Array], outputs: Sequence[str] | None = None) -> IterationResult:
        """Run once, as in `Runner.infer`."""
        if self._runner is None:
            raise UsageError(f"{self.name} is closed")
        names = self.outputs if outputs is None else list(outputs)
        check_names(feed, [info.name for info in self.inputs], names, self.outputs)
        try:
            given = self._runner.infer(dict(feed))
            found = {name: np.array(given[name]) for name in names if name in given}
        except LayerwiseError:
            raise
        except Exception as error:
            raise LayerwiseError(f"{self.name}: {type(error).__name__}: {shown(str(error), 500)}") from error
        if missing := [name for name in names if name not in found]:
            raise LayerwiseError(f"{self.name} gives no output {shown(missing[0], 120)!r}")
        return IterationResult(outputs=found, runtime=self._runner.last_inference_time(), runner_name=self.name)

    def close(self) -> None:
        if self._runner is not None:
            self._runner.deactivate()
            self._runner = None


def _type(dtype: Any) -> str:
    return dtype_name(np.dtype(dtype.numpy() if hasattr(dtype, "numpy") else dtype))


def _shape(shape: Any) -> tuple[int | str | None, ...] | None:
    return None if shape is None else tuple(shape)


def open_extension(spec: RunnerSpec, model: Loadable, *, name: str) -> ExtensionRunner:
    """Run the script of options["script"] and open the first of its `runners`. LayerwiseError where that fails."""
    text = spec.options.get("script")
    if not isinstance(text, str):
        raise UsageError("a runner of an extension module needs the script that makes it (options: script)")
    outputs = [value.name for value in parse_model(model.read(), model.path or "the model").graph.output]
    try:
        made: dict[str, Any] = {"__name__": "layerwise_extension"}
        exec(compile(text, "<extension>", "exec"), made)
        return ExtensionRunner(spec, made["runners"][0], outputs, name)
    except LayerwiseError:
        raise
    except Exception as error:
        raise LayerwiseError(f"{shown(name, 80)}: {type(error).__name__}: {shown(str(error), 500)}") from error
