"""`layerwise debug bundle`: what a search has found, as a folder that shows the fault on its own."""

from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.filesystem.places import current_folder
from layerwise._tool.backends.jobs.folder import job_id
from layerwise._tool.backends.jobs.journal.schema import UNEXPECTED
from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.bundle.spec import BundleSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli.json_output import Collector, print_json
from layerwise._tool.tui.cli.options.report import REPORT
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import run_shown
from layerwise._tool.tui.cli.reports import reporter_of
from layerwise._tool.tui.cli.submit import job_spec
from layerwise._tool.tui.state.jobs import comparison_params

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.journal.view import JobView

_SEARCHES = ("locate", "debug_reduce", "debug_bisect")


def fill_bundle(parser: Parser) -> None:
    parser.usage = "%(prog)s [JOB] [-o DIR] [--number N | --nodes I…]"
    parser.epilog = (
        "layerwise debug reduce BAD.onnx --reference-model GOOD.onnx --onnxrt\n"
        "layerwise debug bundle -o bug-1234          # of the newest search\n"
        "layerwise debug bundle 7 --nodes 14         # of a node that no search has found; 7 may be a comparison\n\n"
        "The folder holds the model, its inputs, the golden outputs, versions, a README, and repro.py, which needs\n"
        "numpy and onnxruntime only (of a PyTorch module torch too). Exit code: 0 the script fails there, as it\n"
        "should, 1 it does not, 2 wrong usage."
    )
    parser.add_argument("job", nargs="?", help="number of a locate, reduce or bisect job; the newest if none is given")
    parser.add_argument("-o", "--output", metavar="DIR", help="a new folder; bundle-JOB if none is given")
    parser.add_argument("--number", type=int, default=1, metavar="N", help="of several findings, the Nth; 1")
    parser.add_argument("--nodes", type=int, nargs="+", default=[], metavar="I", help="these nodes, by position")
    parser.add_argument("--iteration", type=int, default=0, metavar="K", help="whose inputs and golden outputs; 0")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    REPORT.add(parser, parser)


def run_bundle(args: Namespace, log: Log) -> int:
    """Write the bundle and try it; the exit code."""
    view = _search(args.job)
    compare = _compare(view)
    nodes = args.nodes or _culprits(view, args.number - 1)
    target = current_folder() / (args.output or f"bundle-{view.id}")
    spec = BundleSpec(compare=compare, nodes=nodes, iteration=args.iteration, output=str(target))
    command = ["layerwise", "debug", "bundle", str(view.id), "-o", str(target), *_which(args)]
    params, gpus = msgspec.to_builtins(spec), gpus_for(spec.compare.runners)
    job = job_spec("bundle", params, command, gpus=gpus, title=("bundle", str(target)))
    job = msgspec.structs.replace(job, cwd=view.spec.cwd)
    collector = Collector()
    reporter = reporter_of(args)
    collected = reporter.collected() if reporter else None
    code = run_shown(job, log, collector.event, *([collected.event] if collected else []))
    if args.json:
        print_json(collector.document(args.command, code))
    elif collector.result is not None:
        log.verdict(code == 0, f"{shown(str(target), 1000)}: {collector.result['summary']}")
    return reporter.job(job, collected, code) if reporter else code


def _which(args: Namespace) -> list[str]:
    """The options that say which nodes, and of which iteration."""
    line = ["--nodes", *map(str, args.nodes)] if args.nodes else ["--number", str(args.number)]
    return [*line, *(["--iteration", str(args.iteration)] if args.iteration else [])]


def _compare(view: "JobView") -> CompareSpec:
    """The two sides of a search or a comparison. UsageError if it has none."""
    asked = view.spec
    params = comparison_params(asked)
    if len(params.get("runners") or []) < 2:
        raise UsageError(f"job {view.id} has no two sides: a bundle needs the reference's outputs")
    return msgspec.convert(params, CompareSpec)


def _culprits(view: "JobView", number: int) -> list[int]:
    try:
        return culprits(view.result, number)
    except UNEXPECTED as error:
        raise UsageError(f"the result of job {view.id} is damaged: name the nodes with --nodes") from error


def _search(asked: str | None) -> "JobView":
    """The search that is meant. UsageError if there is none."""
    from layerwise._tool.backends.jobs.workspace.store import Workspace

    workspace = Workspace()
    if asked is not None:
        if not job_id(asked):
            raise UsageError("bundle takes the number of a job")
        return workspace.view(job_id(asked))
    for view in reversed(workspace.list_jobs()):
        with suppress(BadFile):  # a damaged job is none that is meant
            if view.spec.action in _SEARCHES and view.result is not None:
                return workspace.view(view.id)
    raise UsageError("no search in this workspace has found anything: `layerwise debug reduce` or `locate` comes first")


def culprits(result: Mapping[str, Any] | None, number: int = 0) -> list[int]:
    """Positions in the suspect's order of the `number`-th set of nodes that a search found, or of a suspect's region.

    UsageError if there is none.
    """
    result = result or {}
    sets = [entry.get("nodes") or [] for entry in result.get("found") or []]
    sets += [suspect.get("region") or [suspect] for suspect in result.get("suspects") or []]
    if not 0 <= number < len(sets):
        raise UsageError(f"the search has found {len(sets)} sets of nodes: there is none of number {number + 1}")
    return [int(node["i"]) for node in sets[number]]
