"""The job action `build_engine`: builds a TensorRT engine from a model, or a picture of its network in ONNX format."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import ModelOptions, Spec, read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.building.builder import build_engine, save_engine
from layerwise._tool.backends.trt.logger import Messages, Say
from layerwise._tool.backends.trt.options import TrtOptions
from layerwise._tool.debugtools.compare.sides.marks import any_marks, outputs_of_file
from layerwise._tool.debugtools.compare.spec import MarkSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class EngineSpec(Spec, frozen=True):
    """An engine to build. model: an ONNX model, or a script whose function (options.network.function) makes a network.

    marks: tensors that become outputs before the model is parsed. verbose: report TensorRT's own messages too.
    """

    model: str
    output: str
    options: TrtOptions = TrtOptions()
    model_options: ModelOptions = ModelOptions()
    marks: MarkSpec = MarkSpec()
    overwrite: bool = False
    verbose: bool = False


def build(context: "JobContext") -> dict[str, Any]:
    """Build the engine that `context.params` describes (an EngineSpec) and write it.

    Result: passed, path, bytes, seconds (of the build, 0 if cached), cached, conclusion (a sentence).
    """
    spec = read_spec(context.params, EngineSpec, "the engine")
    path = Path(spec.output)
    if path.exists() and not spec.overwrite:
        raise UsageError(f"{shown(str(path))} is there already: choose another name, or say --overwrite")
    context.log(f"Loading model: {shown(spec.model)}")
    model = loadable(spec)
    context.log("Building the engine")
    messages = Messages(message_log(context, spec.verbose), verbose=spec.verbose)
    built = build_engine(
        model, spec.options, progress=lambda done, total, text: context.progress(done, total, "steps", text),
        messages=messages,
    )  # fmt: skip
    for note in built.told:
        context.log(note)
    save_engine(built.data, path)
    context.log(f"Saving engine to: {shown(str(path))}")
    engine = shown(str(path), 300)
    told = "was built before, and is taken again" if built.cached else f"was built in {built.seconds:.1f} s"
    return {"passed": True, "path": str(path), "bytes": len(built.data), "seconds": built.seconds,
            "cached": built.cached, "conclusion": f"{engine} {told}. {_compare(spec, engine)}"}  # fmt: skip


def _compare(spec: EngineSpec, engine: str) -> str:
    """What to do next."""
    if spec.options.network.function:
        return f"Whether its numbers are right, `run {engine} --trt --load-outputs GOLDEN` tells."
    return f"Whether its numbers are right, `run {shown(spec.model, 300)} --trt --onnxrt` tells."


def message_log(context: "JobContext", verbose: bool) -> Say:
    """Report TensorRT's warnings in a job's journal, and with `verbose` all its messages."""

    def tell(level: str, text: str) -> None:
        if level == "warning":
            context.warn(f"TensorRT: {shown(text, 500)}")
        elif level in ("info", "verbose") and verbose:
            context.log(f"TensorRT: {shown(text, 500)}", "info" if level == "info" else "verbose")

    return tell


def loadable(spec: EngineSpec) -> Loadable:
    """Return the model with its marked tensors among the outputs, or the script that makes the network."""
    if spec.options.network.function:
        return Loadable(path=Path(spec.model))
    options = spec.model_options
    with ModelFile(spec.model, options.external_data_dir, options.ignore_external_data) as file:
        if not any_marks(spec.marks) and not spec.marks.exclude:
            return Loadable(data=file.structure_bytes(), folder=file.folder)
        from layerwise._tool.surgery.cut.segments import GraphCut

        cut = GraphCut(file.structure())
        return Loadable(data=cut.with_outputs(list(outputs_of_file(spec.marks, cut))), folder=file.folder)
