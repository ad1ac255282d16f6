"""Options of `run` and its relatives, with Polygraphy's names; only help texts and shapes, no meaning."""

from tui.cli.parser import Parser, RunnerFlag

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


def add_onnx(parser: Parser) -> None:
    group = parser.add_argument_group("ONNX loading")
    group.add_argument(
        "--external-data-dir",
        "--load-external-data",
        "--ext",
        metavar="DIR",
        help="folder of the external weights, if not the model's",
    )
    group.add_argument("--ignore-external-data", action="store_true", help="load the structure without weights")
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
    group.add_argument("--fp-to-fp16", action="store_true", help="convert floating tensors to FP16 first")


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
        choices=("auto", "executed", "every"),
        default="auto",
        help="executed: what the optimised graph really computes; every: every tensor of the model, unfused",
    )


def add_saving(parser: Parser) -> None:
    group = parser.add_argument_group("Saving the model")
    group.add_argument("--save-onnx", metavar="PATH", help="save the model as it is run")
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


def add_onnxrt(parser: Parser) -> None:
    group = parser.add_argument_group("onnxruntime")
    group.add_argument(
        "--providers",
        "--execution-providers",
        nargs="+",
        action="extend",
        metavar="NAME",
        default=[],
        help="cpu, cuda, tensorrt, …: in order of priority",
    )
    parser.own(group, "--provider-options", nargs="+", action="extend", metavar="PROVIDER:KEY=VALUE", default=[])
    group.add_argument(
        "--graph-optimization-level",
        metavar="LEVEL",
        help="ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED, ORT_ENABLE_ALL (or 0, 1, 2, 99)",
    )
    parser.own(group, "--threads", type=int, metavar="N", help="threads within a node")
    parser.own(group, "--inter-threads", type=int, metavar="N", help="threads across nodes")
    parser.own(
        group,
        "--custom-ops",
        nargs="+",
        action="extend",
        metavar="LIB",
        default=[],
        help="libraries of custom operators to register",
    )
    group.add_argument("--tf32", action="store_true", default=None, help="allow TF32 (onnxruntime's default on CUDA)")
    parser.own(group, "--no-tf32", dest="tf32", action="store_false", help="full FP32 on CUDA")


def add_data(parser: Parser) -> None:
    group = parser.add_argument_group("Input data")
    group.add_argument("--seed", type=int, default=1, help="of the synthetic inputs; 1 by default")
    group.add_argument(
        "--val-range",
        nargs="+",
        action="extend",
        metavar="[NAME:][LOW,HIGH]",
        default=[],
        help="range of the synthetic inputs",
    )
    group.add_argument("--iterations", "--iters", type=int, metavar="N", help="how many feed dicts to run")
    group.add_argument("--data-loader-backend-module", choices=("numpy", "torch"), default="numpy")
    group.add_argument(
        "--load-inputs",
        "--load-input-data",
        nargs="+",
        action="extend",
        metavar="PATH",
        default=[],
        help="saved inputs: JSON, safetensors, npz, or a folder of JSON files",
    )
    group.add_argument(
        "--data-loader-script", metavar="FILE[:FUNCTION]", help="a script whose load_data() yields feed dicts"
    )
    parser.own(group, "--data-loader-func-name", metavar="NAME", help="the function in that script")


def add_inference(parser: Parser) -> None:
    group = parser.add_argument_group("Inference")
    group.add_argument(
        "--warm-up",
        "--warm-up-runs",
        type=int,
        default=0,
        metavar="N",
        help="runs before the first timed one",
    )
    group.add_argument("--use-subprocess", action="store_true", help="accepted; every job has a process of its own")
    group.add_argument("--sequential-runners", action="store_true", help="one runner in memory at a time")
    group.add_argument("--save-inputs", "--save-input-data", metavar="PATH")
    group.add_argument("--save-input-blob", nargs="?", const=".", metavar="DIR", help="raw bytes of each input")
    group.add_argument(
        "--save-outputs",
        "--save-results",
        metavar="PATH",
        help="JSON, safetensors, or a folder of per-iteration JSON",
    )
    group.add_argument(
        "--load-outputs",
        "--load-results",
        nargs="+",
        action="extend",
        metavar="PATH",
        default=[],
        help="saved outputs as further sides of the comparison",
    )
    group.add_argument(
        "--postprocess",
        "--postprocess-func",
        nargs="+",
        action="extend",
        default=[],
        metavar="[OUTPUT:]top-K[,axis=A]",
    )
    group.add_argument("--postprocess-func-script", metavar="FILE[:FUNCTION]")


def add_job(parser: Parser) -> None:
    group = parser.add_argument_group("Job")
    parser.own(group, "--detach", action="store_true", help="start the job, print its number and leave")
    parser.own(group, "--timeout", metavar="DURATION", help="kill the job after this long (90, 15m, 2h)")
    parser.own(group, "--gpus", type=int, metavar="N", help="GPUs to lease; one is leased if a provider needs it")
    parser.own(group, "--memory-budget", metavar="SIZE", help="what the job may hold in memory at most (500M)")
    parser.own(group, "--json", action="store_true", help="print one JSON document instead of the report")
    group.add_argument(
        "--gen",
        "--gen-script",
        dest="gen_script",
        metavar="PATH",
        help="write an equivalent Python script ('-' prints it) instead of running",
    )
