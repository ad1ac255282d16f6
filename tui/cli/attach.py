"""`layerwise attach [ID]`: the view of a job from its start, whoever runs it."""

import asyncio
from argparse import Namespace
from typing import TYPE_CHECKING, Any

import msgspec

from backends.errors import LayerwiseError, UsageError
from tui.cli.json_output import Collector, print_json
from tui.cli.log import WARNING, Log, shown_lines
from tui.cli.parser import Parser
from tui.cli.progress import progress
from tui.cli.submit import Listener, card_text, exit_code

if TYPE_CHECKING:
    from backends.jobs.view import JobView


def fill_attach(parser: Parser) -> None:
    parser.add_argument("job", nargs="?", help="number of the job; the newest if none is given")
    parser.add_argument("--json", action="store_true", help="wait for its end and print one JSON document")


def run_attach(args: Namespace, log: Log) -> int:
    """Print what the job has said and says until it ends; its exit code. Interrupting leaves the job running."""
    from backends.jobs.store import Workspace

    workspace = Workspace()
    job = _chosen(args.job, workspace.ids())
    view = workspace.view(job)
    collector = Collector()
    try:
        if args.json:
            asyncio.run(_follow(job, collector.event))
        else:
            _report(view, log)
    except KeyboardInterrupt:
        log.say(WARNING, f"Job {job} goes on. Come back with: layerwise attach {job}")
        return 130
    view = workspace.view(job)
    if args.json:
        print_json(collector.document(args.command, exit_code(view)))
    elif view.card:
        log.fatal(card_text(view.card, job))
    else:
        log.verdict(exit_code(view) == 0, f"Job {job}: {view.state}")
    return exit_code(view)


def _report(view: "JobView", log: Log) -> None:
    with progress(log) as show:
        report = _listener(view, log)

        def listen(event: dict[str, Any]) -> None:
            show(event)
            report(event)

        asyncio.run(_follow(view.id, listen))


def _listener(view: "JobView", log: Log) -> Listener:
    """The report of a comparison, or the plain messages of any other job."""
    from debugtools.compare.spec import CompareSpec
    from tui.cli.report import CompareReport

    try:
        spec = view.spec
        if spec.action == "compare":
            return CompareReport(log, msgspec.convert(spec.params, CompareSpec), view.id).event
    except (LayerwiseError, msgspec.ValidationError) as error:
        log.warning(shown_lines(error))
    return lambda event: log.info(shown_lines(event["text"])) if event.get("type") == "log" else None


async def _follow(job: int, listen: Listener) -> None:
    from backends.jobs.client import JobClient
    from backends.jobs.store import Workspace

    async for event in JobClient(Workspace()).events(job, after=0, follow=True):
        listen(event)


def _chosen(asked: str | None, ids: list[int]) -> int:
    if asked is None and ids:
        return ids[-1]
    if asked is not None and asked.isdecimal():
        return int(asked)
    raise UsageError("there are no jobs in this workspace" if asked is None else "attach takes the number of a job")
