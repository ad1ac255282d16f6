"""`layerwise matrix FILE.toml`: models × sides × feeds × actions, each cell a job that is run once."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.places import current_folder
from layerwise._tool.backends.log import WARNING, Log
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.matrix.spec import LOSSES, CellSpec, MatrixSpec
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.report import REPORTS
from layerwise._tool.tui.cli.parser import Parser, positive
from layerwise._tool.tui.cli.progress import progress, run_as_asked
from layerwise._tool.tui.cli.submit import card_text, concluding, exit_code, job_spec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.workspace.store import Workspace
    from layerwise._tool.tui.cli.matrix.file import MatrixFile


def fill_matrix(parser: Parser) -> None:
    parser.usage = "%(prog)s FILE.toml [--cluster local|local:N|ADDRESS|slurm:PROFILE] [--against LAST] [--only failed]"
    parser.epilog = (
        "A cell that is finished is not run again while its model, feeds, words and versions are the same.\n"
        "A second `layerwise matrix` on a file that is run already follows that run.\n"
        "Exit code: 0 all cells passed, 1 some did not, 2 wrong usage, 130 interrupted."
    )
    parser.add_argument("file", metavar="FILE.toml", help="models, sides, feeds and actions")
    group = parser.add_argument_group("Matrix")
    group.add_argument("--cluster", metavar="WHERE", default="", help="a dask cluster: local, local:N, HOST:PORT or "
                       "slurm:PROFILE; without it cells run here")  # fmt: skip
    group.add_argument("--workers", type=positive, metavar="N", help="cells at a time; as many as there are CPU slots")
    group.add_argument("--against", metavar="LAST", default="", help="what changed since: last, a job's number, a day "
                       "(2026-11-22), or a result file")  # fmt: skip
    group.add_argument("--only", choices=("failed",), help="only the cells that did not pass there, or last; run again")
    group.add_argument("--again", action="store_true", help="run finished cells again")
    group.add_argument("--list", action="store_true", help="print the cells and their command lines, run nothing")
    group.add_argument("--attach", action="store_true", help="follow the run that goes on, or show the last one")
    group.add_argument("-o", "--output", metavar="PATH", help="write the result file here too")
    group.add_argument("--detach", action="store_true", help="start it, print its number and leave")
    group.add_argument("--json", action="store_true", help="print one JSON document instead of the report")
    add(parser, REPORTS)


def run_matrix(args: Namespace, log: Log) -> int:
    """Run the cells that are not finished; the exit code."""
    from layerwise._tool.backends.jobs.workspace.store import Workspace
    from layerwise._tool.tui.cli.matrix.file import read_matrix
    from layerwise._tool.tui.cli.matrix.last import newest, running

    path = current_folder() / args.file
    workspace = Workspace()
    if args.attach:
        job = newest(workspace, path)
        if not job:
            raise UsageError(f"{shown(args.file, 200)} has not been run in this workspace")
        return _follow(job, _spec_of(workspace, job), args, log)
    file = read_matrix(path)
    spec = _spec(file, args, workspace, log)
    if args.list:
        return _list(spec, args)
    if job := running(workspace, path):
        log.say(WARNING, f"Job {job} runs this matrix now: this follows it. Leaving (ctrl+c) leaves it running.")
        return _follow(job, _spec_of(workspace, job), args, log)
    from layerwise._tool.tui.cli.matrix.report import MatrixReport, document

    job_of = job_spec("matrix", msgspec.to_builtins(spec), args.words, title=("matrix", file.path.name))
    whole = msgspec.structs.replace(job_of, cwd=str(file.path.parent), cpus=0)
    told = Namespace(**{**vars(args), "reporter": None})
    code = run_as_asked(whole, told, log, lambda: MatrixReport(log, spec).event, document)
    return _reported(workspace, path, args, code)


def _reported(workspace: "Workspace", path: Path, args: Namespace, code: int) -> int:
    """Write the reports that were asked for: the cells, and the jobs of those that did not pass; the exit code."""
    from layerwise._tool.tui.cli.matrix.last import newest
    from layerwise._tool.tui.cli.reports import reporter_of

    reporter = reporter_of(args)
    return reporter.folder(newest(workspace, path), code) if reporter is not None else code


def _spec(file: "MatrixFile", args: Namespace, workspace: "Workspace", log: Log) -> MatrixSpec:
    from layerwise._tool.backends.cluster.where import checked_profile, parse_where, require_dask
    from layerwise._tool.tui.cli.matrix.plan import cells_of

    profile: dict[str, Any] = {}
    if args.cluster:
        require_dask()
        where = parse_where(args.cluster, args.workers, file.slurm, 1)
        profile = checked_profile(args.cluster.partition(":")[2], file.slurm) if where.kind == "slurm" else {}
    notes: list[str] = []
    cells = cells_of(file, notes)
    for note in notes:
        log.warning(note)
    against = _against(workspace, file.path, args, log)
    chosen = cells if args.only is None or against is None else _failed(cells, against)
    return MatrixSpec(
        name=file.path.stem, file=str(file.path), cells=chosen, cluster=args.cluster, profile=profile,
        workers=args.workers or file.cells.get("workers"), against=str(against or ""),
        again=args.again or args.only is not None, subset=len(chosen) < len(cells),
        output=str(current_folder() / args.output) if args.output else "", losses=file.cells.get("losses", LOSSES),
    )  # fmt: skip


def _against(workspace: "Workspace", file: Path, args: Namespace, log: Log) -> Path | None:
    """The result file that the run is held against. Before the first run `last` is none."""
    from layerwise._tool.tui.cli.matrix.last import newest_result, result_file

    if args.against in ("", "last") and not args.only:
        found = newest_result(workspace, file) if args.against else None
        if args.against and found is None:
            log.warning("--against last: no earlier run of this matrix has ended; nothing is held against it")
        return found
    return result_file(workspace, file, args.against or "last")


def _failed(cells: list[CellSpec], against: Path) -> list[CellSpec]:
    """The cells that did not pass then. UsageError if all did."""
    from layerwise._tool.debugtools.matrix.against import read_result

    bad = {row.id for row in read_result(against).cells if row.receipt.verdict != "passed"}
    found = [cell for cell in cells if (cell.model, cell.side, cell.feed, cell.action) in bad]
    if not found:
        raise UsageError(f"--only failed: all cells passed in {shown(str(against), 300)}")
    return found


def _list(spec: MatrixSpec, args: Namespace) -> int:
    from layerwise._tool.backends.log import put
    from layerwise._tool.backends.shell import shell_line
    from layerwise._tool.tui.cli.json_output import print_json

    if args.json:
        planned = [{"model": cell.model, "side": cell.side, "feed": cell.feed, "action": cell.action,
                    "command": cell.job.command} for cell in spec.cells]  # fmt: skip
        print_json({"passed": True, "messages": [], "error": None, "planned": planned})
        return 0
    for cell in spec.cells:
        put(shell_line(cell.job.command))
    put(counted(len(spec.cells), "cell"))
    return 0


def _follow(job: int, spec: MatrixSpec, args: Namespace, log: Log) -> int:
    """Print what the job of a matrix has said and says until it ends; its exit code. Leaving leaves it running."""
    from layerwise._tool.backends.jobs.workspace.store import Workspace
    from layerwise._tool.tui.cli.follow import EventFollower, run_interruptibly
    from layerwise._tool.tui.cli.json_output import Collector, print_json
    from layerwise._tool.tui.cli.matrix.report import MatrixReport, document
    from layerwise._tool.tui.cli.reports import reporter_of

    collector = Collector()
    report = collector.event if args.json else concluding(MatrixReport(log, spec).event, log, "matrix")
    try:
        with progress(log) as show:
            run_interruptibly(EventFollower(job, report, show).run())
    except KeyboardInterrupt:
        log.say(WARNING, f"Job {job} goes on. Come back with: layerwise attach {job}")
        return 130
    view = Workspace().view(job)
    if args.json:
        print_json(document(collector, args.command, exit_code(view)))
    elif view.card:
        log.fatal(card_text(view.card, job))
    reporter, code = reporter_of(args), exit_code(view)
    return reporter.folder(job, code) if reporter is not None else code


def _spec_of(workspace: "Workspace", job: int) -> MatrixSpec:
    """The matrix of a job. UsageError if its parameters are none of this version."""
    return read_spec(workspace.view(job).spec.params, MatrixSpec, f"the matrix of job {job}")
