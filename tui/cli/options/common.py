"""Options of `run` and its relatives, with Polygraphy's names; only help texts and shapes, no meaning."""

import argparse

from layerwise._tool.tui.cli.parser import Parser, RunnerFlag

COMPARE_NAMES = (
    "simple",
    "indices",
    "l2",
    "cosine_similarity",
    "distance_metrics",
    "psnr",
    "snr",
    "quality_metrics",
    "perceptual_metrics",
)
MODEL_TYPES = ("onnx", "engine", "trt-network-script", "frozen", "keras", "ckpt", "uff", "caffe")


def add_logging(parser: Parser) -> None:
    group = parser.add_argument_group("Logging")
    group.add_argument("-v", "--verbose", action="count", default=0, help="say more; repeat for still more")
    group.add_argument("-q", "--quiet", action="count", default=0, help="say less; repeat for still less")
    parser.own(group, "--extra-verbose", action="count", default=0, help="the same as -vv")
    group.add_argument(
        "--verbosity",
        nargs="+",
        action="extend",
        metavar="[PATH:]LEVEL",
        help="ULTRA_VERBOSE, SUPER_VERBOSE, EXTRA_VERBOSE, VERBOSE, INFO, START, FINISH, WARNING, ERROR or CRITICAL, "
        "for everything or for a part (backend, comparator, tools)",
    )
    group.add_argument("--silent", action="store_true", help="print nothing but fatal errors")
    group.add_argument(
        "--log-format",
        nargs="+",
        action="extend",
        choices=("timestamp", "line-info", "no-colors"),
        default=[],
        help="what each line carries",
    )
    group.add_argument("--log-file", metavar="PATH", help="write the log to this file too")


def add_runners(parser: Parser) -> None:
    group = parser.add_argument_group("Runners", "Compared in the order given; each may be repeated.")
    group.add_argument("--onnxrt", action=RunnerFlag, help="onnxruntime")
    parser.own(group, "--onnx", action=RunnerFlag, const="reference", help="the ONNX reference evaluator")
    group.add_argument("--pluginref", action=RunnerFlag, help="CPU references of common TensorRT plugins")
    group.add_argument("--trt", action=RunnerFlag, help="TensorRT")
    parser.own(
        group,
        "--trt-engine",
        action=RunnerFlag,
        const="trt",
        nargs=1,
        metavar="ENGINE",
        help="TensorRT with this engine",
    )
    group.add_argument("--tf", action=RunnerFlag, help="TensorFlow (convert with tf2onnx instead)")
    parser.own(
        group,
        "--runner",
        action=RunnerFlag,
        nargs=1,
        const="json",
        metavar="SPEC",
        help="a runner with its own options: KIND[,OPTION=VALUE…] (onnxrt,graph_optimization_level=disable) or JSON",
    )
    parser.own(
        group,
        "--reference-model",
        metavar="MODEL",
        help="another model (yesterday's export, the FP32 original) as the second side, on the last runner",
    )
    parser.own(
        group,
        "--rename",
        nargs="+",
        action="extend",
        metavar="NAME=OTHER",
        help="tensor NAME of the first side is OTHER on the second; names must match exactly otherwise",
    )


def add_model(parser: Parser, shapes: bool = True, required: bool = False) -> None:
    group = parser.add_argument_group("Model")
    group.add_argument("model_file", nargs=None if required else "?", help="path of the model")
    group.add_argument("--model-type", choices=MODEL_TYPES, help="by default told from the file name")
    if shapes:
        group.add_argument(
            "--input-shapes",
            "--inputs",
            nargs="+",
            action="extend",
            metavar="NAME:[DIMS]",
            default=[],
            help="shapes to run with; several for one input are used in turn",
        )


def add_reading(parser: Parser) -> argparse._ArgumentGroup:
    """How a model's weights are found; the group for more of that kind."""
    group = parser.add_argument_group("ONNX loading")
    group.add_argument(
        "--external-data-dir",
        "--load-external-data",
        "--ext",
        metavar="DIR",
        help="folder of the external weights, if not the model's",
    )
    group.add_argument("--ignore-external-data", action="store_true", help="load the structure without weights")
    return group


def add_onnx(parser: Parser) -> None:
    group = add_reading(parser)
    group.add_argument(
        "--shape-inference",
        "--do-shape-inference",
        action="store_true",
        default=None,
        help="infer missing shapes (the default)",
    )
    parser.own(group, "--skip-shape-inference", dest="shape_inference", action="store_false")
    group.add_argument(
        "--no-onnxruntime-shape-inference",
        action="store_true",
        help="accepted; shapes are inferred by onnx alone",
    )
    group.add_argument("--fp-to-fp16", action="store_true", help="convert it to FP16 first")


def add_marking(parser: Parser) -> None:
    group = parser.add_argument_group("Marked tensors")
    group.add_argument(
        "--onnx-outputs",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="compare these tensors instead of the outputs: names, globs, or '*' for all",
    )
    group.add_argument(
        "--onnx-exclude-outputs",
        "--exclude-outputs",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="leave these out: names or globs",
    )
    group.add_argument(
        "--onnx-outputs-by-type",
        nargs="+",
        action="extend",
        metavar="OP",
        help="compare the outputs of all nodes of these types instead",
    )
    parser.own(group, "--mark-all", action="store_true", help="compare every tensor")
    parser.own(
        group,
        "--mark",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="compare these tensors besides the outputs: names or globs",
    )
    parser.own(
        group,
        "--mark-type",
        nargs="+",
        action="extend",
        metavar="OP",
        help="compare the outputs of all nodes of these types besides the outputs",
    )
    parser.own(
        group,
        "--observe",
        choices=("auto", "executed", "every", "marked"),
        default="auto",
        help="executed: what the optimised graph really computes; every: every tensor of the model, unfused; "
        "marked: one optimised session with all marked tensors as outputs, as Polygraphy does (holds all of them "
        "at once); auto: as saved outputs were observed, else executed where only optimisation differs, else every",
    )


def add_saving(parser: Parser) -> None:
    group = parser.add_argument_group("Saving the model")
    group.add_argument("--save-onnx", metavar="PATH", help="save the model as it is run")
    add_external_data(group)


def add_external_data(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--save-external-data",
        "--external-data-path",
        nargs="?",
        const="",
        metavar="PATH",
        help="keep its weights in an external file",
    )
    group.add_argument("--external-data-size-threshold", metavar="SIZE", help="smaller weights stay inside")
    group.add_argument("--no-save-all-tensors-to-one-file", action="store_true", help="one external file per weight")


def add_overwrite(parser: Parser, group: argparse._ActionsContainer) -> None:
    parser.own(group, "--overwrite", action="store_true", help="replace what is at that path")
