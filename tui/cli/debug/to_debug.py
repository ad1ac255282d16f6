"""From parsed options of a search to its DebugSpec and job, and back to a command line."""

import os
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search.spec import CheckSpec, DebugSpec, FlakySpec, Mode
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.debug.options import REPLAY
from layerwise._tool.tui.cli.request.to_spec import given
from layerwise._tool.tui.cli.submit import job_spec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec

_PASSED_ON = ("CUDA_VISIBLE_DEVICES", "GLIBC_TUNABLES", "PYTHONPATH")  # a worker's own differ
_DEFAULTS = DebugSpec()


def to_debug(args: Namespace, what: str) -> DebugSpec:
    """The search that `args` describe; what: reduce, bisect, repeat or precision. UsageError for what does not fit."""
    compare = _compare(args, what)
    check = None if args.check is None else _check(args)
    two = what == "precision" or (compare is not None and len(compare.runners) > 1)  # FP32 is a side of its own there
    if args.cluster and check is None:
        raise UsageError("--cluster is where checks run: give a --check command")
    if check is not None and args.interactive:
        raise UsageError("--interactive and --check: one of them judges, not both")
    interactive = check is None and (args.interactive or not two)
    spec = DebugSpec(
        compare=compare,
        check=check,
        interactive=interactive,
        mode=_mode(args, what == "precision" or (two and not interactive and check is None)),
        artifacts=args.artifacts,
        artifacts_dir=args.artifacts_dir,
        iter_info=args.iter_info,
        load_replay=args.load_debug_replay,
        save_replay=args.save_debug_replay or (REPLAY if check is not None or interactive else None),
    )
    return _with_models(spec, args) if what != "repeat" else _with_count(spec, args)


def _with_count(spec: DebugSpec, args: Namespace) -> DebugSpec:
    """The options of repeating."""
    rate, confidence = _chance("--rate", args.rate), _chance("--confidence", args.confidence)
    return msgspec.structs.replace(spec, until=args.until, rate=rate, confidence=confidence)


def _chance(option: str, value: float) -> float:
    if not 0 < value < 1:
        raise UsageError(f"{option} {value:g}: a probability between 0 and 1")
    return value


def _with_models(spec: DebugSpec, args: Namespace) -> DebugSpec:
    """The options of searches that make models."""
    spec = msgspec.structs.replace(
        spec,
        output=args.output,
        min_good=getattr(args, "min_good", None),
        reduce_inputs=getattr(args, "reduce_inputs", True),
        reduce_outputs=getattr(args, "reduce_outputs", True),
        artifact=args.iter_artifact,
        folder="." if spec.interactive else None,
        keep_intermediate=args.keep_intermediate,
        flaky=_flaky(getattr(args, "flaky", None)),
        confidence=_chance("--confidence", getattr(args, "confidence", _DEFAULTS.confidence)),
    )
    stays = spec.interactive or spec.keep_intermediate or len(Path(spec.artifact).parts) > 1
    if stays and Path(spec.artifact).exists():
        raise UsageError(
            f"{shown(spec.artifact)} already exists, refusing to overwrite.\n"
            "Please remove the file manually or specify a different path with `--iter-artifact`."
        )
    return spec


def _compare(args: Namespace, what: str) -> CompareSpec | None:
    sides = bool(args.runners or args.load_outputs)
    if args.model_file is None and not sides:
        if what == "repeat":
            return None
        raise UsageError("the path of the model to search in is missing")
    if args.gen_script:
        raise UsageError("--gen-script writes comparisons only: use `layerwise run`")
    runners = args.runners if sides and args.runners else [("onnxrt", None)]
    spec = given(args, runners)
    marks = msgspec.structs.replace(spec.marks, only=bool(spec.marks.names))
    kept = spec.runners if sides or args.reference_model else []
    return msgspec.structs.replace(spec, runners=kept, marks=marks, statistics=False, strict_names=True)


def _mode(args: Namespace, compared: bool) -> Mode:
    one_way = not (getattr(args, "reduce_inputs", True) and getattr(args, "reduce_outputs", True))
    asked: Mode | None = getattr(args, "mode", None)
    if one_way and asked == "ddmin":
        raise UsageError("--no-reduce-inputs and --no-reduce-outputs go with --mode bisect or linear")
    return asked or ("ddmin" if compared and not one_way else "bisect")


def _check(args: Namespace) -> CheckSpec:
    if not args.check:
        raise UsageError("--check needs a command after it")
    if args.jobs is not None and args.jobs < 1:
        raise UsageError("--jobs must be 1 or more")
    passed = [name for name in _PASSED_ON if name != "CUDA_VISIBLE_DEVICES" or not args.gpus]
    return CheckSpec(
        command=args.check,
        fail_codes=args.fail_codes,
        ignore_fail_codes=args.ignore_fail_codes,
        fail_regex=args.fail_regex,
        show_output=args.show_output,
        hide_fail_output=args.hide_fail_output,
        timeout=values.parse_duration(args.check_timeout) if args.check_timeout else None,
        parallel=args.jobs or (0 if args.cluster else 1),
        cluster=checked_cluster(args.cluster),
        environment={name: os.environ[name] for name in passed if name in os.environ},
    )


def checked_cluster(text: str) -> str:
    """Where checks run, if anywhere but here. UsageError for what is no cluster, MissingPackage without dask."""
    if not text:
        return ""
    from layerwise._tool.backends.cluster.where import parse_where, require_dask

    if text.startswith("slurm:"):
        raise UsageError("--cluster slurm: its profile is in the file of a matrix; write local, local:N or HOST:PORT")
    parse_where(text, None, {}, 1)
    require_dask()
    return text


def _flaky(text: str | None) -> FlakySpec | None:
    """`0.2`, `0.2,0.01` or `auto`: chances that a wrong run passes and that a right one fails."""
    if text is None or text == "auto":
        return FlakySpec(None, None) if text else None
    try:
        chances = [float(part) for part in text.split(",")]
    except ValueError:
        chances = []
    if not 1 <= len(chances) <= 2 or not all(0 <= chance < 1 for chance in chances) or sum(chances) >= 1:
        raise UsageError(f"--flaky {shown(text, 40)}: a chance such as 0.2, two such as 0.2,0.01, or auto")
    return FlakySpec(chances[0], chances[1] if len(chances) > 1 else 0.0)


def debug_job(spec: DebugSpec, what: str, args: Namespace) -> "JobSpec":
    """The job, with the job options of the command line. Commands and people take no slot: what they run does."""
    timeout = values.parse_duration(args.timeout) if args.timeout else None
    idle = spec.check is not None or spec.interactive
    gpus = gpus_for(spec.compare.runners, args.gpus) if spec.compare and not idle else args.gpus or 0
    job = job_spec(f"debug_{what}", msgspec.to_builtins(spec), args.words, timeout, gpus)
    return msgspec.structs.replace(job, cpus=0) if idle else job
