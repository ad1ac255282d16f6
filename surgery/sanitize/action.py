"""The job action `sanitize`, in this order: other outputs, FP16, other input shapes, shapes, clean-up, sorting,
folding, upper bounds. Steps that run the model or compute constants load onnxruntime: only for a process that may
crash. Rarely used modules are imported on demand.
"""

from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import onnx

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import FeedSpec, Spec, read_spec
from layerwise._tool.backends.tensors import TensorInfo, to_onnx
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.extract.structure import extract
from layerwise._tool.surgery.extract.wire import End
from layerwise._tool.surgery.folding.options import FoldOptions
from layerwise._tool.surgery.folding.structure import fold_constants
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.rewrite.ends import with_outputs
from layerwise._tool.surgery.rewrite.tidy import cleaned_model, count_nodes, in_order
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.types.shapes import with_shapes, without_shapes
from layerwise._tool.surgery.wire.pieces import THRESHOLD

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

Say = Callable[[str, str], None]


class SanitizeSpec(Spec, frozen=True):
    """What to do, mirroring the options of `surgeon sanitize`.

    outputs: names or globs that replace the model's; None: unchanged. by_type: operators whose outputs are marked
    too; exclude: names or globs that are not outputs. shapes: input -> new shape. infer: infer shapes. fallback: take
    them from a run with the first feed instead. bounds: tensor ("" for all others) -> maximum. threshold: for folding.
    """

    outputs: list[str] | None = None
    by_type: list[str] = []
    exclude: list[str] = []
    bounds: dict[str, int] = {}
    shapes: dict[str, list[int | str | None]] = {}
    infer: bool = True
    fallback: bool = False
    feeds: FeedSpec = FeedSpec()
    cleanup: bool = False
    toposort: bool = False
    fold: bool = False
    passes: int | None = None
    partitioning: Literal["basic", "recursive"] | None = None
    fold_shapes: bool = True
    per_pass_inference: bool = True
    threshold: int | None = None


def sanitized(model: Structure, spec: SanitizeSpec, say: Say) -> Structure:
    """Return the model processed by `spec`. `say` takes a level and a text.

    UsageError for an unknown name; LayerwiseError for a cycle, or a model that cannot be run.
    """
    model = marked(model, spec.outputs, spec.by_type, spec.exclude)
    if spec.shapes:
        model = _reshaped(model, spec.shapes)
    if spec.fallback:
        model = _as_run(model, spec.feeds, say)
    elif spec.infer:
        model = _inferred(model, say)
    if spec.cleanup:
        model = cleaned_model(model)
    if spec.toposort:
        model = in_order(model)
    if spec.fold:
        model = _folded(model, spec, say)
    return _bounded(model, spec.bounds, say) if spec.bounds else model


def _folded(model: Structure, spec: SanitizeSpec, say: Say) -> Structure:
    options = FoldOptions(
        passes=spec.passes,
        partitioning=spec.partitioning,
        shapes=spec.fold_shapes,
        infer=spec.infer and not spec.fallback and spec.per_pass_inference,
        threshold=spec.threshold,
    )
    model = fold_constants(model, options, say)
    return _inferred(model, say) if spec.infer and not spec.fallback and not options.infer else model


def _inferred(model: Structure, say: Say) -> Structure:
    model, warnings = with_shapes(model)
    for text in warnings:
        say("warning", text)
    return model


def marked(model: Structure, outputs: list[str] | None, by_type: list[str], exclude: list[str]) -> Structure:
    """Return the model with other outputs, as SanitizeSpec says them. UsageError for an unknown name."""
    made = [name for node in model.nodes if node.op_type != "Constant" for name in node.output if name]
    names = list(model.output_names) if not by_type else []
    known = dict.fromkeys([*made, *model.output_names], True)
    known = dict.fromkeys([*model.input_names, *model.initializers], False) | known
    if outputs is not None:
        names = made if outputs == ["*"] else [name for text in outputs for name in _matching(text, known)]
    for op_type in by_type:
        found = [n for node in model.nodes if node.op_type.lower() == op_type.lower() for n in node.output if n]
        if not found:
            raise UsageError(f"the model has no node of type {shown(op_type, 60)!r}")
        names += found
    left_out = {name for text in exclude for name in _matching(text, known)}
    names = [name for name in names if name not in left_out]
    if not names:
        raise UsageError("no output would be left")
    return model if names == model.output_names else with_outputs(model, list(dict.fromkeys(names)), only=True)


def _matching(text: str, known: dict[str, bool]) -> list[str]:
    """Names among `known`; a wildcard stands for what nodes make (those that are True)."""
    found = [name for name, is_made in known.items() if name == text or (is_made and fnmatchcase(name, text))]
    if not found:
        raise UsageError(f"the model has no tensor {shown(text, 120)!r}")
    return found


def _reshaped(model: Structure, shapes: dict[str, list[int | str | None]]) -> Structure:
    """Return the model with other input shapes; named inner tensors become inputs. Shapes derived from them are
    dropped.
    """
    own = [name for name in model.input_names if name not in shapes]
    ends = {name: End(name) for name in [*model.input_names, *(name for name in shapes if name not in own)]}
    ends |= {name: End(name, tuple(shape)) for name, shape in shapes.items()}
    return without_shapes(extract(model, list(ends.values()), None))


def _as_run(model: Structure, feeds: FeedSpec, say: Say) -> Structure:
    """Return the model with the types and shapes of one run."""
    from layerwise._tool.surgery.feeds.planned import planned
    from layerwise._tool.surgery.types.by_running import shapes_of_a_run

    feeds = planned(feeds, model.proto, lambda text: say("warning", text), lambda text: say("info", text))
    known = shapes_of_a_run(model, feeds, None, lambda text: say("warning", text))
    inner = [name for node in model.nodes for name in node.output if name in known]
    ends = {value.name for value in model.outputs}
    values = {name: _value(known[name]) for name in inner if name not in ends}
    return model.with_(
        values={**model.values, **values},
        inputs=tuple(_value(known[v.name]) if v.name in known else v for v in model.inputs),
        outputs=tuple(_value(known[v.name]) if v.name in known else v for v in model.outputs),
    )


def _value(info: TensorInfo) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(info.name, to_onnx(info.dtype), info.shape)


def _bounded(model: Structure, bounds: dict[str, int], say: Say) -> Structure:
    from layerwise._tool.surgery.edits.shapes import UpperBounds
    from layerwise._tool.surgery.types.unbounded import unbounded_tensors

    tensors = unbounded_tensors(model.proto())
    for name in bounds:
        if name and not model.defines(name):
            raise UsageError(f"the model has no tensor {shown(name, 120)!r}")
        if name and name not in tensors:
            say("warning", f"{shown(name, 120)!r} sizes nothing without a limit: it gets no upper bound")
    chosen = {name: size for name, size in bounds.items() if not name or name in tensors}
    applied = {name: chosen.get(name, chosen.get("")) for name in tensors}
    say("info", f"Set tensor upper bounds: { {name: size for name, size in applied.items() if size is not None} }")
    return UpperBounds(bounds=chosen).apply(model) if any(size is not None for size in applied.values()) else model


class SanitizeJob(Spec, frozen=True):
    """model and output: paths. external: name of the file for weights next to the output, "" for the default;
    external_each: a file for each weight instead, named after it.
    """

    model: str
    output: str
    what: SanitizeSpec = SanitizeSpec()
    external_data_dir: str | None = None
    ignore_external_data: bool = False
    external: str | None = None
    external_each: bool = False
    external_threshold: int = THRESHOLD
    overwrite: bool = False


def sanitize(context: "JobContext") -> dict[str, Any]:
    """Do what `context.params` (a SanitizeJob) says. Result: passed; output; before and after, counts of nodes; bytes.

    UsageError for a request that does not match the model, BadFile for a bad model.
    """
    job = read_spec(context.params, SanitizeJob, "what to do")
    path = Path(job.output)
    with ModelFile(job.model, job.external_data_dir, job.ignore_external_data) as file:
        model = Structure.open(file)
        before = count_nodes(model)
        model = sanitized(model, job.what, lambda level, text: context.log(text, level))
        external = None if job.external is None else Path(job.external or f"{path.name}.data")
        save(model, path, external=external, each=job.external_each, threshold=job.external_threshold,
             overwrite=job.overwrite)  # fmt: skip
    size = path.stat().st_size
    return {"passed": True, "output": job.output, "before": before, "after": count_nodes(model), "bytes": size}
