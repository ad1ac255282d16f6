"""The `layerwise bench …` line that is equivalent to a BenchSpec, and the one that records it with Nsight Systems."""

import msgspec

from layerwise._tool.backends.shell import shell_line
from layerwise._tool.debugtools.bench.spec import BenchSpec, ExportSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli.bench.options import OWN
from layerwise._tool.tui.cli.options.option import line
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
    return ["layerwise", "bench", *plain, *line(OWN, spec), *dashes]


def nsys_line(spec: BenchSpec, name: str) -> str:
    """The command line that records this bench: `nsys stats NAME.nsys-rep` sums it up."""
    short = msgspec.structs.replace(spec, profile=False, layers=False, exports=ExportSpec(), against=None)
    return shell_line(["nsys", "profile", f"--output={name}", *_NSYS, *command_line(short)])
