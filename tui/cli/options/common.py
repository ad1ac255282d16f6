"""Options of `run` and its relatives about runners, the model and its tensors; Polygraphy's names."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.options.model import EXTERNAL, HALF, MODEL_TYPE, PATH, READING
from layerwise._tool.tui.cli.options.option import (
    WRITTEN,
    Group,
    InForm,
    Joint,
    Option,
    flag,
    many,
    many_words,
)
from layerwise._tool.tui.cli.parser import RunnerFlag

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec

_ALIGN_HINT = "auto, names or a file"
_MARKED = "marks!=outputs only"
_OBSERVE_HINTS = {
    "executed": "as the runner really runs it",
    "every": "every tensor, unfused",
    "marked": "all marked at once, as Polygraphy",
}


def compared() -> "CompareSpec":
    """A comparison that nothing was said of."""
    from layerwise._tool.debugtools.compare.spec import CompareSpec

    return CompareSpec()


def _runner(*flags: str, own: bool = False, **settings: Any) -> Option:
    return Option(*flags, own=own, action=RunnerFlag, dest="runners", default=[], **settings)


RUNNERS = Group(
    "Runners",
    _runner("--onnxrt", help="onnxruntime"),
    _runner("--onnx", own=True, const="reference", help="the ONNX reference evaluator"),
    _runner("--pluginref", help="CPU references of common TensorRT plugins"),
    _runner("--trt", help="TensorRT"),
    _runner("--trt-engine", own=True, const="trt", nargs=1, metavar="ENGINE", help="TensorRT with this engine"),
    _runner("--torch", own=True, nargs=1, metavar="SOURCE",
            help="a PyTorch module: FILE.py:function that returns (module, example inputs), an exported program "
            "(.pt2), or the folder of a Hugging Face model with safetensors"),
    _runner("--tf", help="TensorFlow (convert with tf2onnx instead)"),
    _runner("--runner", own=True, nargs=1, const="json", metavar="SPEC",
            help="a runner with its own options: KIND[,OPTION=VALUE…] (onnxrt,graph_optimization_level=disable) or "
            "JSON"),
    Option("--reference-model", own=True, metavar="MODEL",
           help="another model (yesterday's export, the FP32 original) as the second side, on the last runner"),
    many("--rename", own=True, field="rename", metavar="NAME=OTHER", default=None, script=WRITTEN,
         parse=values.parse_names_map, show=values.format_names_map,
         help="tensor NAME of the first side is OTHER on the second; of others see --strict-names"),
    Option("--align", own=True, field="align", metavar="auto|names|MAP", form=InForm("pairing", hint=_ALIGN_HINT),
           help="which tensors of two models belong together: auto (the default) finds out by names, values and "
           "structure where layers are compared and names leave some of both without counterpart; names: equal names; "
           "or a file that --save-align wrote, in which pairs may be corrected"),
    Option("--save-align", own=True, field="save_align", metavar="PATH", help="which tensors belong together, as JSON"),
    flag("--strict-names", own=True, field="strict_names", script=WRITTEN,
         help="inputs and outputs belong together by their exact names alone, not by similar names or places; data of "
         "other shapes are refused"),
    description="Compared in the order given; each may be repeated.",
    plain=compared,
)  # fmt: skip
_SHAPES = many(
    "--input-shapes", "--inputs", field="feeds.shapes", parse=values.parse_shapes, show=values.format_shapes,
    metavar="NAME:[DIMS]", script="DataLoader.input_shapes",
    form=InForm("input shapes", "feeds", hint="input:[1,3,224,224]", empty="as declared", when="source=synthetic"),
    help="shapes to run with; several for one input are used in turn",
)  # fmt: skip
MODEL = Group("Model", Option("model_file", nargs="?", help="path of the model"), MODEL_TYPE, _SHAPES, plain=compared)
NEEDED_MODEL = Group("Model", PATH, MODEL_TYPE, _SHAPES, plain=compared)
ONNX = Group(
    READING.title,
    *READING.items,
    flag("--shape-inference", "--do-shape-inference", default=None, help="infer missing shapes (the default)"),
    Option("--skip-shape-inference", own=True, field="model_options.shape_inference", dest="shape_inference",
           action="store_false", script=WRITTEN),
    flag("--no-onnxruntime-shape-inference", help="accepted; shapes are inferred by onnx alone"),
    *HALF.items,
    plain=compared,
)  # fmt: skip


def means_all(names: list[str]) -> bool:
    """Whether names of outputs mean every tensor."""
    return names in (["*"], ["mark", "all"], ["mark all"], ["mark\\ all"])


def _marks(args: Namespace) -> "MarkSpec":
    from layerwise._tool.debugtools.compare.spec import MarkSpec

    instead = args.onnx_outputs or []
    besides = args.mark or []
    everything = args.mark_all or any(means_all(names) for names in (instead, besides))
    return MarkSpec(
        everything=everything,
        names=[name for names in (instead, besides) if not means_all(names) for name in names],
        op_types=(args.onnx_outputs_by_type or []) + (args.mark_type or []),
        exclude=args.onnx_exclude_outputs,
        only=not everything and bool(instead or args.onnx_outputs_by_type),
    )


def _mark_words(spec: "CompareSpec") -> list[str]:
    marks = spec.marks
    names, types = ("--onnx-outputs", "--onnx-outputs-by-type") if marks.only else ("--mark", "--mark-type")
    return [
        *(["--mark-all"] if marks.everything else []),
        *many_words(names, marks.names),
        *many_words(types, marks.op_types),
        *many_words("--exclude-outputs", marks.exclude),
    ]


MARKING = Group(
    "Marked tensors",
    Joint(
        "marks",
        many("--onnx-outputs", metavar="NAME", default=None,
             help="compare these tensors instead of the outputs: names, globs, or '*' for all"),
        many("--onnx-exclude-outputs", "--exclude-outputs", metavar="NAME", help="leave these out: names or globs",
             form=InForm("except", "marks", key="exclude", hint="names or globs", empty="none", when=_MARKED)),
        many("--onnx-outputs-by-type", metavar="OP", default=None,
             help="compare the outputs of all nodes of these types instead"),
        flag("--mark-all", own=True, help="compare every tensor"),
        many("--mark", own=True, metavar="NAME", default=None,
             form=InForm("names", "marks", key="names", hint="*Softmax* or exact names", when="marks=names"),
             help="compare these tensors besides the outputs: names or globs"),
        many("--mark-type", own=True, metavar="OP", default=None,
             form=InForm("op types", "marks", key="op_types", hint="MatMul Softmax", when="marks=op types"),
             help="compare the outputs of all nodes of these types besides the outputs"),
        read=_marks, write=_mark_words,
    ),
    Option("--observe", own=True, field="observe", choices=("auto", "executed", "every", "marked"), default="auto",
           form=InForm("observe", "marks", hint=_OBSERVE_HINTS, when=_MARKED),
           help="executed: what the optimised graph really computes; every: every tensor of the model, unfused; "
           "marked: one optimised session with all marked tensors as outputs, as Polygraphy does (holds all of them "
           "at once); auto: as saved outputs were observed, else executed where only optimisation differs, else "
           "every"),
    plain=compared,
)  # fmt: skip


SAVING = Group(
    EXTERNAL.title,
    Option("--save-onnx", field="model_options.save_onnx", metavar="PATH", script=WRITTEN,
           help="save the model as it is run"),
    *EXTERNAL.items,
    plain=compared,
)  # fmt: skip
