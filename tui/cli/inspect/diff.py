"""`layerwise inspect diff`, `inspect diff-tactics` and `inspect tactics`: files against each other."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.log import INFO, Log
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.tui.cli.json_output import print_json
from layerwise._tool.tui.cli.options.compare import COMPARE_NAMES, THRESHOLDS, metric_names
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.report import REPORT
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.reports import reporter_of
from layerwise._tool.tui.cli.request.to_spec import tolerance

_SHOWN = 10


def fill_diff(parser: Parser) -> None:
    parser.usage = "%(prog)s A B [OPTIONS]"
    parser.epilog = (
        "Compared by what they hold: saved outputs or inputs tensor by tensor, models by structure and weights,\n"
        "tactic replays layer by layer, other JSON value by value, folders file by file, all else byte by byte.\n"
        "Exit code: 0 equal (within tolerance), 1 different, 2 an error."
    )
    parser.add_argument("a", help="a file or a folder")
    parser.add_argument("b", help="the one that it is compared with; relative errors divide by it")
    group = parser.add_argument_group("Comparison")
    parser.own(group, "--bytes", action="store_true", help="byte by byte, whatever the files hold")
    parser.own(group, "-r", "--recursive", action="store_true", help="accepted; folders are compared with all in them")
    parser.own(group, "--all", action="store_true", help=f"print every difference, not {_SHOWN} of each kind")
    parser.own(group, "--json", action="store_true", help="print one JSON document instead of the text")
    parser.own(
        group,
        "--align",
        default="auto",
        metavar="auto|names|MAP",
        help="how nodes and weights of two models are "
        "paired that are written in different ways: by equal weights and what is computed around them (auto), by "
        "names alone, or by a map that run --save-align wrote",
    )
    group.add_argument("--compare", "--compare-func", nargs="+", action="extend", choices=COMPARE_NAMES,
                       help="metrics for tensors; simple")  # fmt: skip
    add(parser, THRESHOLDS)


def run_diff(args: Namespace, log: Log) -> int:
    """Compare the two; 0 equal, 1 different, 2 an error."""
    from layerwise._tool.debugtools.diff.action import diff_files
    from layerwise._tool.debugtools.diff.spec import DiffSpec

    spec = DiffSpec(
        a=args.a,
        b=args.b,
        as_bytes=args.bytes,
        metrics=metric_names(args.compare),
        tolerance=tolerance(args),
        align=args.align,
    )
    try:
        outcome = diff_files(spec)
    except LayerwiseError as error:
        log.fatal(shown_lines(error))
        return 2
    if args.json:
        print_json({"command": args.command, "exit_code": int(not outcome.equal), **outcome.to_json()})
        return int(not outcome.equal)
    log.verdict(outcome.equal, outcome.summary)
    if log.shows(INFO):
        for line in outcome.lines(None if args.all else _SHOWN):
            log.continued(f"    {line}")
    return int(not outcome.equal)


def fill_tactics(parser: Parser) -> None:
    parser.add_argument("tactic_replay", help="a tactic replay, as --save-tactics writes it")


def run_tactics(args: Namespace, log: Log) -> int:
    """Print a tactic replay."""
    from layerwise._tool.debugtools.engines.tactics import load_replay

    log.info("\n".join(shown(line) for line in load_replay(args.tactic_replay).lines()))
    return 0


def fill_diff_tactics(parser: Parser) -> None:
    parser.add_argument("--dir", default="", help="a folder with good and bad replays, in folders of these names")
    parser.add_argument("--good", help="a folder of good replays, or one")
    parser.add_argument("--bad", help="a folder of bad replays, or one")


def run_diff_tactics(args: Namespace, log: Log) -> int:
    """Say which tactics only bad builds have."""
    if not args.dir and (args.good is None or args.bad is None):
        raise UsageError("Either `--dir`, or both `--good` and `--bad` must be specified.")
    return _diff_tactics(args.good or str(Path(args.dir) / "good"), args.bad or str(Path(args.dir) / "bad"), args, log)


def _diff_tactics(good: str, bad: str, args: Namespace, log: Log) -> int:
    from layerwise._tool.debugtools.engines.tactics import load_replays, potentially_bad

    for given in (args.dir, args.good, args.bad):
        if given and not Path(given).exists():
            raise UsageError(f"{shown(given, 300)}: no such file or folder")
    loaded = []
    for what, path in (("good", good), ("bad", bad)):
        layers, read, skipped = load_replays(Path(path))
        for file in skipped:
            log.verbose(f"{shown(str(file))} does not look like a tactic replay file, skipping.")
        log.info(f"Loaded {len(read)} {what} tactic replays.")
        log.verbose(f"{what.title()} tactic replays: {[shown(str(file)) for file in read]}")
        loaded.append(layers)
    found = potentially_bad(loaded[0], loaded[1])
    _report_tactics({name: "only bad builds have: " + ", ".join(map(str, each)) for name, each in found.items()}, args)
    if not found:
        log.info("Could not determine potentially bad tactics. Try providing more tactic replay files if possible.")
        return 0
    log.info("Found potentially bad tactics:")
    for name, algorithms in found.items():
        texts = [shown(str(algorithm)) for algorithm in algorithms]
        log.info(f"Layer: {shown(name)}\n    Algorithms: {texts}")
    return 0


def fill_debug_diff_tactics(parser: Parser) -> None:
    parser.add_argument("replays", nargs="*", metavar="REPLAY", help="the replays of two builds")
    REPORT.add(parser, parser)
    fill_diff_tactics(parser)


def run_debug_diff_tactics(args: Namespace, log: Log) -> int:
    """Say which layers have another algorithm in the second build, or as `inspect diff-tactics`."""
    if not args.replays:
        return run_diff_tactics(args, log)
    if len(args.replays) != 2:
        raise UsageError("give the replays of two builds, or --dir, or --good and --bad")
    from layerwise._tool.debugtools.diff.files import diff_replays
    from layerwise._tool.debugtools.engines.tactics import load_replay

    outcome = diff_replays(*map(load_replay, args.replays))
    log.info(outcome.summary)
    changed = [item.text for section in outcome.sections for item in section.items]
    _report_tactics({f"{number}. {text.splitlines()[0]}": text for number, text in enumerate(changed, 1)}, args)
    for line in outcome.lines(None):
        log.info(line)
    return 0


def _report_tactics(layers: Mapping[str, str], args: Namespace) -> None:
    """Write the reports that are asked for: a remark for each layer, since nothing says that a tactic is wrong."""
    if not (reporter := reporter_of(args)):
        return
    from layerwise._tool.debugtools.report.structure import Case, Section

    cases = [Case(name=name, outcome="passed", message=text, rule="tactics/differs", severity="warning")
             for name, text in layers.items()]  # fmt: skip
    none = [Case(name="no layer's tactics differ", outcome="passed")]
    reporter.sections("tactics", [Section("layers", cases or none)], 0)
