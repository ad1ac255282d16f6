"""CPU references of common TensorRT plugins as a runner; all other operators use the ONNX reference evaluator."""

from typing import Any

import onnx
from onnx.reference.op_run import OpRun

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.reference.evaluate import Evaluation
from layerwise._tool.backends.reference.plugin_ops import PLUGINS, Plugin
from layerwise._tool.backends.reference.runner import ReferenceRunner
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.text import shown


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
