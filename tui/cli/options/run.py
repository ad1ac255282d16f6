"""Options of a run: engines, inputs, inference, the job; Polygraphy's names."""

from layerwise._tool.tui.cli.parser import Parser, count


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
    parser.own(group, "--threads", type=count, metavar="N", help="threads within a node")
    parser.own(group, "--inter-threads", type=count, metavar="N", help="threads across nodes")
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


def add_data(parser: Parser, iterations: bool = True) -> None:
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
    if iterations:
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
        type=count,
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
