"""Options of a run: engines, inputs, inference, the job; Polygraphy's names."""

from argparse import Namespace
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.options.common import compared
from layerwise._tool.tui.cli.options.model import size
from layerwise._tool.tui.cli.options.option import WRITTEN, Group, InForm, Joint, Option, flag, glued, many
from layerwise._tool.tui.cli.options.report import REPORT
from layerwise._tool.tui.cli.parser import count

if TYPE_CHECKING:
    from layerwise._tool.backends.specs import OptimizationLevel, RunnerSpec
    from layerwise._tool.debugtools.compare.spec import CompareSpec

_LOAD_DATA = "load_data"
_LEVELS: "dict[str, OptimizationLevel]" = {
    "ort_disable_all": "disable", "ort_enable_basic": "basic", "ort_enable_extended": "extended",
    "ort_enable_layout": "layout", "ort_enable_all": "all",
    "0": "disable", "1": "basic", "2": "extended", "3": "layout", "99": "all",
}  # fmt: skip
_LEVEL_NAMES = {level: name.upper() for name, level in _LEVELS.items() if not name.isdecimal() and level != "layout"}


def optimization_level(text: str) -> "OptimizationLevel | None":
    """onnxruntime's level from its enum name, its number, or our word for it."""
    word = text.strip().lower().removeprefix("graphoptimizationlevel.")
    found = next((level for level in _LEVELS.values() if level == word), None)
    try:
        return found or (_LEVELS[word] if text else None)
    except KeyError:
        raise UsageError(
            f"--graph-optimization-level {shown(text, 40)}: choose ORT_DISABLE_ALL, ORT_ENABLE_BASIC, "
            "ORT_ENABLE_EXTENDED or ORT_ENABLE_ALL"
        ) from None


def _onnxrt() -> "RunnerSpec":
    from layerwise._tool.backends.specs import RunnerSpec

    return RunnerSpec(kind="onnxrt")


ONNXRT = Group(
    "onnxruntime",
    many("--providers", "--execution-providers", field="providers", metavar="NAME", script="SessionFromOnnx.providers",
         help="cpu, cuda, tensorrt, …: in order of priority"),
    many("--provider-options", own=True, field="provider_options", metavar="PROVIDER:KEY=VALUE",
         script="SessionFromOnnx.provider_options", parse=values.parse_provider_options,
         show=values.format_provider_options),
    Option("--graph-optimization-level", field="graph_optimization_level", metavar="LEVEL", parse=optimization_level,
           show=lambda level: _LEVEL_NAMES.get(level, level), script="SessionFromOnnx.graph_optimization_level",
           help="ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED, ORT_ENABLE_ALL (or 0, 1, 2, 99)"),
    Option("--threads", own=True, field="threads", type=count, metavar="N", script="SessionFromOnnx.threads",
           help="threads within a node"),
    Option("--inter-threads", own=True, field="inter_threads", type=count, metavar="N",
           script="SessionFromOnnx.inter_threads", help="threads across nodes"),
    many("--session-config", own=True, field="session_config", metavar="KEY=VALUE",
         script="SessionFromOnnx.session_config", parse=values.parse_session_config,
         show=values.format_session_config, help="settings of its sessions, such as session.x64quantprecision=1"),
    many("--custom-ops", own=True, field="custom_ops", metavar="LIB", script="SessionFromOnnx.custom_ops",
         help="libraries of custom operators to register"),
    flag("--tf32", field="tf32", default=None, script="SessionFromOnnx.tf32",
         help="allow TF32 (onnxruntime's default on CUDA)"),
    Option("--no-tf32", own=True, field="tf32", dest="tf32", action="store_false", script=WRITTEN,
           help="full FP32 on CUDA"),
    plain=_onnxrt,
)  # fmt: skip


def data_script(args: Namespace) -> tuple[str | None, str]:
    """The script whose load_data() gives the feeds, and the name of its function."""
    if not args.data_loader_script:
        return None, _LOAD_DATA
    return values.parse_script(args.data_loader_script, args.data_loader_func_name or _LOAD_DATA)


def _script_words(spec: "CompareSpec") -> list[str]:
    feeds = spec.feeds
    if not feeds.script:
        return []
    return glued("--data-loader-script", values.format_script(feeds.script, feeds.function, _LOAD_DATA))


_SYNTHETIC = "source=synthetic"
_MADE = {"auto": "read from the graph", "polygraphy": "integers 0 or 1, dimensions 1"}
DATA = Group(
    "Input data",
    Option("--feeds", own=True, field="feeds.made", choices=("polygraphy", "auto"), default="polygraphy",
           form=InForm("inputs", "feeds", hint=_MADE, when=_SYNTHETIC),
           help="how inputs are made: auto reads the graph (ids over whole tables, masks, positions, lengths, dynamic "
           "dimensions not 1) and says what it chose, --input-shapes and --val-range win; polygraphy (the default): "
           "integers 0 or 1, dynamic dimensions 1"),
    Option("--seed", field="feeds.seed", type=int, default=1, script="DataLoader.seed",
           form=InForm("seed", "feeds", when=_SYNTHETIC), help="of the synthetic inputs; 1 by default"),
    many("--val-range", field="feeds.val_range", metavar="[NAME:][LOW,HIGH]", parse=values.parse_ranges,
         show=values.format_ranges, script="DataLoader.val_range",
         form=InForm("values", "feeds", empty="[0,1]", hint="[-1,1] or input:[0,255]", when=_SYNTHETIC),
         help="range of the synthetic inputs"),
    Option("--iterations", "--iters", field="feeds.iterations", type=int, metavar="N", script="DataLoader.iterations",
           form=InForm("iterations", "feeds", empty="1"), help="how many feed dicts to run"),
    Option("--data-loader-backend-module", field="feeds.backend_module", choices=("numpy", "torch"), default="numpy",
           script="DataLoader.data_loader_backend_module"),
    many("--load-inputs", "--load-input-data", field="feeds.files", metavar="PATH", script=WRITTEN,
         form=InForm("files", "feeds", hint=".json .safetensors .npz", when="source=files"),
         help="saved inputs: JSON, safetensors, npz, a folder of JSON files, or a dump of another program"),
    Joint(
        "feeds.script",
        Option("--data-loader-script", metavar="FILE[:FUNCTION]",
               form=InForm("script", "feeds", key="script", hint="file.py or file.py:function", when="source=script"),
               help="a script whose load_data() yields feed dicts"),
        Option("--data-loader-func-name", own=True, metavar="NAME", help="the function in that script"),
        read=lambda args: data_script(args)[0], write=_script_words,
    ),
    Joint("feeds.function", read=lambda args: data_script(args)[1], write=lambda spec: []),
    plain=compared,
)  # fmt: skip
INFERENCE = Group(
    "Inference",
    Option("--warm-up", "--warm-up-runs", field="warm_up", type=count, default=0, metavar="N",
           script="Comparator.run.warm_up", help="runs before the first timed one"),
    flag("--use-subprocess", help="accepted; every job has a process of its own"),
    flag("--sequential-runners", field="sequential", script=WRITTEN, help="one runner in memory at a time"),
    Option("--save-inputs", "--save-input-data", field="save_inputs", metavar="PATH",
           script="Comparator.run.save_inputs_path"),
    Option("--save-input-blob", field="save_input_blob", nargs="?", const=".", metavar="DIR",
           script="Comparator.run.save_input_blob_path", help="raw bytes of each input"),
    Option("--save-outputs", "--save-results", field="save_outputs", metavar="PATH",
           script="Comparator.run.save_outputs_path", help="JSON, safetensors, or a folder of per-iteration JSON"),
    many("--load-outputs", "--load-results", metavar="PATH",
         help="saved outputs as further sides of the comparison; also dumps of other programs: folders, .zip, .tar, "
         ".tar.gz of .npy, .npz, .safetensors, .pt"),
    many("--dump-rule", own=True, metavar="RULE",
         help="how dumps of --load-outputs are read: 'iter{iteration}/{name}.rank{rank}.npy', OLD=NEW (__=/) in names, "
         "GLOB:0,3,1,2 or GLOB:1x64x-1 (layout), GLOB:TYPE, or a .json or .toml file of these; else by what they look "
         "like"),
    many("--postprocess", "--postprocess-func", field="postprocess", metavar="[OUTPUT:]top-K[,axis=A]", script=WRITTEN,
         parse=lambda items: values.parse_map(
             items, values.parse_top_k, "a postprocess function (top-5, top-3,axis=1)"
         ), show=lambda functions: values.format_map(functions, str)),
    Option("--postprocess-func-script", field="postprocess_script", metavar="FILE[:FUNCTION]", script=WRITTEN),
    plain=compared,
)  # fmt: skip
_JOB = (
    flag("--detach", own=True, help="start the job, print its number and leave"),
    Option("--timeout", own=True, metavar="DURATION", help="kill the job after this long (90, 15m, 2h)"),
    Option("--gpus", own=True, type=int, metavar="N", help="GPUs to lease; one is leased if a provider needs it"),
)
PLAIN_JOB = Group("Job", *_JOB)
JOB = Group(
    PLAIN_JOB.title,
    *_JOB,
    Option("--memory-budget", own=True, field="memory_budget", parse=size, metavar="SIZE",
           form=InForm("memory budget", empty="no limit", hint="2G", key="memory"),
           help="what the job may hold in memory at most (500M)"),
    flag("--json", own=True, help="print one JSON document instead of the report"),
    REPORT,
    Option("--gen", "--gen-script", dest="gen_script", metavar="PATH",
           help="write an equivalent Python script ('-' prints it) instead of running"),
    plain=compared,
)  # fmt: skip
