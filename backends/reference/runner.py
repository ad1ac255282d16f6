"""The ONNX reference evaluator as a runner: slow, exact in types, and independent of every engine.

With CPU references of common TensorRT plugins it is the runner `pluginref`.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.reference.op_run import OpRun

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.reference.evaluate import Evaluation, tensor_infos
from layerwise._tool.backends.reference.plugin_ops import PLUGINS, Plugin
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Loadable, RunnerBase, check_feed_types, check_names, flat_outputs
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.text import shown


class ReferenceRunner(RunnerBase):
    """Evaluates the graph node by node. Any tensor of the main graph can be requested, not only outputs."""

    def __init__(self, spec: RunnerSpec, evaluation: Evaluation, name: str) -> None:
        self.spec = spec
        self.name = name
        self._evaluation: Evaluation | None = evaluation
        graph = evaluation.graph
        weights = {tensor.name for tensor in graph.initializer}
        self._overridable = {value.name for value in graph.input} & weights
        self.inputs = tensor_infos(value for value in graph.input if value.name not in weights)
        self.outputs = [value.name for value in graph.output]
        self._tensors = evaluation.tensors()
        self._optional = {value.name for value in graph.output if value.type.HasField("optional_type")}

    def infer(self, feed: Mapping[str, Array], outputs: Sequence[str] | None = None) -> IterationResult:
        """Run once, as in `Runner.infer`."""
        if self._evaluation is None:
            raise UsageError(f"{self.name} is closed")
        names = self.outputs if outputs is None else list(outputs)
        check_names(feed, [info.name for info in self.inputs], names, self._tensors, optional=self._overridable)
        check_feed_types(feed, self.inputs)
        start = time.perf_counter()
        values = self._evaluation.run(feed, names)
        runtime = time.perf_counter() - start
        held = ((name, _held(value) if name in self._optional else value) for name, value in values.items())
        found = flat_outputs(held)
        owned = {name: _owned(value) for name, value in found.items()}
        return IterationResult(outputs=owned, runtime=runtime, runner_name=self.name)

    def close(self) -> None:
        self._evaluation = None


def _held(value: Any) -> Any:
    """What an optional holds: onnx's evaluator has it as a list of one array, sequence or None."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _owned(value: Array) -> Array:
    """Return a copy; strings as objects, since some operators return fixed-width text."""
    return value.astype(object) if value.dtype.kind in "US" else np.array(value)


def open_reference(spec: RunnerSpec, model: Loadable, *, name: str) -> ReferenceRunner:
    """Open a model in the ONNX reference evaluator. BadFile or LayerwiseError if it is unsupported."""
    return ReferenceRunner(
        spec, Evaluation(parse_model(model.read(), model.path or "the model"), model.data_folder()), name
    )


def open_pluginref(spec: RunnerSpec, model: Loadable, *, name: str) -> ReferenceRunner:
    """Open a model that may contain TensorRT plugins. LayerwiseError names operators without an implementation."""
    proto = parse_model(model.read(), model.path or "the model")
    used = {(node.domain, node.op_type) for node in proto.graph.node if node.op_type in PLUGINS}
    known = {entry.domain for entry in proto.opset_import}
    for domain in sorted({domain for domain, _ in used} - known):
        proto.opset_import.append(onnx.helper.make_opsetid(domain, 1))
    _check_operators(proto, used)
    operators = [_operator(domain, op, PLUGINS[op]) for domain, op in sorted(used)]
    return ReferenceRunner(spec, Evaluation(proto, model.data_folder(), operators), name)


def _check_operators(proto: onnx.ModelProto, plugins: set[tuple[str, str]]) -> None:
    functions = {(function.domain, function.name) for function in proto.functions}
    unknown = sorted(
        {
            node.op_type
            for node in proto.graph.node
            if (node.domain, node.op_type) not in plugins | functions and not onnx.defs.has(node.op_type, node.domain)
        }
    )
    if unknown:
        listed = ", ".join(shown(op, 60) for op in unknown[:8])
        raise LayerwiseError(f"no CPU reference for {listed}; plugins that have one: {', '.join(sorted(PLUGINS))}")


def _operator(domain: str, op: str, compute: Plugin) -> type:
    """Make an operator class for the reference evaluator."""

    def run(self: OpRun, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        return (compute(attributes, *inputs),)

    return type(op, (OpRun,), {"op_domain": domain, "_run": run})
