"""The job action `convert`: converts one ONNX model to another."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import LayerwiseError, UsageError, writing
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.reference.evaluate import tensor_infos
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.compare.sides.marks import any_marks, outputs_of_file
from layerwise._tool.debugtools.convert.conclusion import conclusion
from layerwise._tool.debugtools.convert.cost import measured
from layerwise._tool.debugtools.convert.engine_precision import quantised
from layerwise._tool.debugtools.convert.spec import ConvertSpec
from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.feeds.planned import planned
from layerwise._tool.surgery.history.soundness import edit_problems
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.precision.conversion import every_node, labels, to_low_precision
from layerwise._tool.surgery.rewrite.ends import with_outputs
from layerwise._tool.surgery.rewrite.inlining import inlined
from layerwise._tool.surgery.rewrite.opset import convert_opset, opset_of
from layerwise._tool.surgery.saving.model import save_as
from layerwise._tool.surgery.weights.arrays import chosen_weights, read_weights, save_weights, with_weights

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_NAMED = 8
_ON_THE_CPU = {
    "float16": "onnxruntime's CPU provider computes FP16 nodes in FP32: what overflows or loses digits in FP16 does "
    "not there. Run it on a GPU, or with the ONNX reference evaluator (--onnx), to see FP16.",
    "bfloat16": "onnxruntime's CPU provider has next to no bfloat16 operators: run it on a GPU, or with the ONNX "
    "reference evaluator (--onnx).",
}


def convert(context: "JobContext") -> dict[str, Any]:
    """Convert the model that `context.params` describes (a ConvertSpec).

    Warns about problems that the conversion introduced, and writes the result anyway. Result: passed (no new
    problems); path; bytes (of that file); nodes; low, kept, other (counts, as `surgery.precision.conversion.Converted`)
    and clipped (names) if nodes were converted; quantised (nodes with quantised inputs) if any, cost (relative L2
    error by output, None: not finite), worst (the output that is off most) and inputs (how many it was measured on);
    conclusion (a sentence).
    """
    spec = read_spec(context.params, ConvertSpec, "what to convert")
    context.log(f"Loading model: {shown(spec.model)}")
    options = spec.model_options
    with ModelFile(spec.model, options.external_data_dir, options.ignore_external_data) as file:
        structure = Structure.open(file)
    path = Path(spec.output)
    _refuse(path, spec)
    before = structure
    structure, result = _changed(structure, spec, context)
    problems = edit_problems(before, structure)
    for problem in problems[:_NAMED]:
        context.warn(f"the result is not sound: {problem.node}: {problem.message}")
    if path.suffix in (".npz", ".npy"):
        _save_weights(structure, spec, path, context)
    else:
        _save_model(structure, spec, path, context)
    if spec.int8 is not None:
        result |= _cost(before, spec, path, context)
    facts = {"path": str(path), "bytes": path.stat().st_size, "nodes": len(structure.nodes)}
    found = {**facts, **result}
    return {"passed": not problems, **found, "conclusion": conclusion(spec, found, problems)}


def _cost(before: Structure, spec: ConvertSpec, path: Path, context: "JobContext") -> dict[str, Any]:
    """What the outputs lose, on the inputs that were given or planned; nothing where a model does not run here."""
    assert spec.int8 is not None
    fed = [value for value in before.inputs if value.name not in before.initializers]
    quiet: Any = lambda *words: None  # noqa: E731 - what is to be said was said for the calibration
    try:
        wanted = planned(spec.int8.feeds, before.proto, quiet, quiet, quiet)
        found = measured(context.artifacts / "float.onnx", path, make_feeds(wanted, tensor_infos(fed), quiet))
    except LayerwiseError as error:
        context.warn(f"what this costs in accuracy was not measured: {shown(str(error), 300)}")
        return {}
    for name, error_of in list(found.outputs.items())[:_NAMED]:
        on = counted(found.inputs, "input")
        context.log(f"Output {shown(name, 80)} is off by {error_of:.3g} (relative L2) on {on}")
    finite = {name: value if math.isfinite(value) else None for name, value in found.outputs.items()}
    return {"cost": finite, "worst": found.worst, "inputs": found.inputs}


def _refuse(path: Path, spec: ConvertSpec) -> None:
    """Raise UsageError for an output that may not be written, before any work is done."""
    if path.exists() and path.samefile(spec.model) and not spec.overwrite:
        raise UsageError(f"{shown(str(path))} is the model itself: give the result another name")
    if path.exists() and not spec.overwrite:
        raise UsageError(f"{shown(str(path))} is there already: choose another name, or say --overwrite")


def _changed(structure: Structure, spec: ConvertSpec, context: "JobContext") -> tuple[Structure, dict[str, Any]]:
    result: dict[str, Any] = {}
    if spec.opset is not None:
        context.log(f"Converting opset {opset_of(structure)} to {spec.opset}")
        structure = convert_opset(structure, spec.opset, context.warn)
    if spec.weights:
        arrays = read_weights(spec.weights)
        structure = with_weights(structure, arrays)
        context.log(f"Replaced {len(arrays)} weight(s): {_listed(list(arrays))}")
    if structure.functions and (spec.low or spec.int8):
        context.log(f"Inlining {len(structure.functions)} local function(s)")
        structure = inlined(structure)
    keep = labels(list(every_node(structure.nodes)), spec.keep, spec.keep_types)
    if any_marks(spec.marks) or spec.marks.exclude:
        structure = with_outputs(structure, outputs_of_file(spec.marks, GraphCut(structure.proto())), only=True)
        context.log(f"The model has {len(structure.outputs)} output(s) now")
    if spec.low is not None:
        structure, result = _lowered(structure, spec.low, keep, context)
    if spec.int8 is not None:
        structure, result = quantised(structure, spec.int8, keep, context)
    return structure, result


def _lowered(structure: Structure, low: Any, keep: set[str], context: "JobContext") -> tuple[Structure, dict[str, Any]]:
    context.log(f"Converting float tensors to {low}")
    done = to_low_precision(structure, low, keep, bodies=True)
    if done.clipped:
        context.warn(
            f"{len(done.clipped)} constant(s) hold values beyond the range of {low}, which are its largest value now: "
            f"{_listed(done.clipped)}"
        )
    context.log(f"{done.low} nodes are {low}, {done.kept} are kept in FP32, {done.other} cannot be {low}")
    if not done.low:
        context.warn(f"no node is {low} now")
    context.log(_ON_THE_CPU[low])
    counts = {"low": done.low, "kept": done.kept, "other": done.other}
    return done.structure, {**counts, "clipped": list(done.clipped)}


def _save_model(structure: Structure, spec: ConvertSpec, path: Path, context: "JobContext") -> None:
    save_as(structure, path, spec.model_options, overwrite=spec.overwrite)
    context.log(f"Saving ONNX model to: {shown(str(path))}")


def _save_weights(structure: Structure, spec: ConvertSpec, path: Path, context: "JobContext") -> None:
    names = chosen_weights(structure, spec.only_weights)
    with writing(shown(str(path))):
        save_weights(structure, names, path)
    context.log(f"Saving {len(names)} weight(s) to: {shown(str(path))}")


def _listed(names: Any) -> str:
    text = ", ".join(shown(name, 80) for name in names[:_NAMED])
    return f"{text} and {len(names) - _NAMED} more" if len(names) > _NAMED else text
