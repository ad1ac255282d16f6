"""`layerwise doctor`: what works here, what does not, and what mends it. `layerwise where`: where things are."""

import sys
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from shutil import get_terminal_size

from msgspec import to_builtins

from layerwise._tool.backends.log import Log, put
from layerwise._tool.backends.probe import Probe, probe
from layerwise._tool.tui.cli.doctor.engines import graphics, installation
from layerwise._tool.tui.cli.doctor.finding import Finding, ending, report
from layerwise._tool.tui.cli.doctor.places import places, settings, workspace
from layerwise._tool.tui.cli.doctor.terminal import terminal
from layerwise._tool.tui.cli.json_output import print_json
from layerwise._tool.tui.cli.parser import Parser, seconds


def fill_doctor(parser: Parser) -> None:
    parser.epilog = (
        "Exit code: 0 nothing to mend, 1 something is. What is marked -- is worth knowing and no fault.\n"
        "`layerwise check install` is its first part alone, which starts no process."
    )
    parser.own(parser, "--json", action="store_true", help="print one JSON document instead of the text")
    parser.own(parser, "--wait", type=seconds, default=60.0, metavar="S",
               help="how long driver and engines may take to answer")  # fmt: skip


def run_doctor(args: Namespace, log: Log) -> int:
    """Look at everything; 1 if something has to be mended."""
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(_ask, args.wait)
        here = [*terminal(), *workspace(), *settings()]
        answer = asked.result()
    found = answer if isinstance(answer, Probe) else None
    findings = [*installation(found), *graphics(found), *here]
    if isinstance(answer, str):
        findings.append(Finding("Installation", "processes", "wrong", answer))
    wrong = [one for one in findings if one.state == "wrong"]
    if args.json:
        code = 1 if wrong else 0
        print_json({"command": args.command, "exit_code": code, "findings": to_builtins(findings),
                    "wrong": [one.text for one in wrong]})  # fmt: skip
        return code
    for line in report(findings, get_terminal_size().columns if sys.stdout.isatty() else 0):
        put(line)
    sys.stdout.flush()
    (log.error if wrong else log.finish)(ending(findings))
    return 1 if wrong else 0


def _ask(wait: float) -> Probe | str:
    try:
        return probe(wait)
    except OSError as error:
        return f"no process can be started: {error.strerror}"


def fill_where(parser: Parser) -> None:
    parser.epilog = "LAYERWISE_HOME, XDG_CONFIG_HOME and LAYERWISE_LEASES move them."
    parser.own(parser, "--json", action="store_true", help="print one JSON document instead of the text")


def run_where(args: Namespace, log: Log) -> int:
    """Print where things are; they need not be there yet."""
    found = places()
    if args.json:
        print_json({"command": args.command, "exit_code": 0, **found})
        return 0
    for name, path in found.items():
        put(f"{name:<10} {path or 'none'}")
    return 0
