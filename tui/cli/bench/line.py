"""The `layerwise bench …` line that is equivalent to a BenchSpec, and the one that records it with Nsight Systems."""

from collections.abc import Iterator

import msgspec

from layerwise._tool.backends.shell import shell_line
from layerwise._tool.debugtools.bench.spec import BenchSpec, ExportSpec, PlanSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli.request.line import command_line as run_line

_NSYS = ("--trace=cuda,nvtx,osrt,cudnn,cublas", "--cuda-graph-trace=node", "--trace-fork-before-exec=true",
         "--force-overwrite=true")  # fmt: skip


def command_line(spec: BenchSpec) -> list[str]:
    """The argv (command name first, unquoted) whose `bench` gives `spec` again."""
    alike = CompareSpec(
        model=spec.model, model_options=spec.model_options, runners=spec.runners, feeds=spec.feeds, statistics=True
    )
    shared = run_line(alike)[2:]
    plain, dashes = (shared[: shared.index("--")], shared[shared.index("--") :]) if "--" in shared else (shared, [])
    return ["layerwise", "bench", *plain, *_own(spec), *dashes]


def nsys_line(spec: BenchSpec, name: str) -> str:
    """The command line that records this bench: `nsys stats NAME.nsys-rep` sums it up."""
    short = msgspec.structs.replace(spec, profile=False, layers=False, exports=ExportSpec(), against=None)
    return shell_line(["nsys", "profile", f"--output={name}", *_NSYS, *command_line(short)])


def _own(spec: BenchSpec) -> Iterator[str]:
    plan, unset = spec.plan, PlanSpec()
    names = {"--warm-up": "warm_up_runs", "--warm-up-time": "warm_up", "--duration": "duration",
             "--iterations": "iterations", "--streams": "streams", "--idle-time": "idle"}  # fmt: skip
    for flag, name in names.items():
        if getattr(plan, name) != getattr(unset, name):
            yield from (flag, str(getattr(plan, name)))
    yield from _many("--batches", spec.batches)
    yield from _many("--load-raw-inputs", [f"{name}:{path}" for name, path in spec.raw_inputs.items()])
    if spec.average_runs:
        yield from ("--avg-runs", str(spec.average_runs))
    if spec.percentiles != BenchSpec(model="").percentiles:
        yield from _many("--percentile", [str(percent) for percent in spec.percentiles])
    exports = spec.exports
    for flag, on in {
        "--cuda-graph": spec.cuda_graph, "--no-data-transfers": not spec.transfers,
        "--profile": spec.profile and exports.profile is None, "--layer-info": spec.layers and exports.layers is None,
        "--skip-inference": spec.skip_inference,
    }.items():  # fmt: skip
        if on:
            yield flag
    for flag, path in {
        "--against": spec.against, "-o": exports.report, "--export-times": exports.times,
        "--export-profile": exports.profile, "--export-layer-info": exports.layers, "--export-output": exports.output,
    }.items():  # fmt: skip
        if path is not None:
            yield from (flag, path)


def _many(flag: str, values: list[int] | list[str]) -> list[str]:
    return [flag, *map(str, values)] if values else []
