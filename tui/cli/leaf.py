"""Runs one command: its parser, its log, the frame of RUNNING and PASSED lines."""

import contextlib
import importlib
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial

from layerwise._tool.backends.errors import LayerwiseError, UsageError, refusal
from layerwise._tool.backends.filesystem.places import config_file
from layerwise._tool.backends.log import CRITICAL, INFO, LEVELS, START, Log
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.tui.cli.options.logging import LOGGING
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.registry import CHECK, Leaf
from layerwise._tool.tui.cli.reports import make_reporter, reporter_of

TEXT_ALONE = frozenset({"logs", "completion", "man", "demo"})
"""Commands without `--json`: what they print is for another program, or for a screen."""

_NO_DOCUMENT = ("gen_script", "nsys")


def run_leaf(words: str, leaf: Leaf, argv: list[str]) -> int:
    """Parse `argv` with the options of `leaf` and run it; the exit code. Raises LayerwiseError for user errors
    of parsing; those of running are logged."""
    try:
        return _begin(words, leaf, argv)
    except LayerwiseError as error:
        _tell_early(error, words, argv)
        raise


def _begin(words: str, leaf: Leaf, argv: list[str]) -> int:
    parser = Parser(f"layerwise {words}", leaf.summary)
    own_json = fill_parser(parser, leaf)
    args = parser.parse_args(argv)
    log = make_log(args)
    as_json = getattr(args, "json", False)
    apart = next((name for name in _NO_DOCUMENT if as_json and getattr(args, name, None)), None)
    if apart is not None:
        raise UsageError(f"--{apart.replace('_', '-')} does what has no document: leave --json out")
    if as_json and own_json:
        log.only_errors_to_stderr()
    _tell_settings(log)
    args.words = ["layerwise", *words.split(), *argv]
    args.command = shell_line(args.words)
    args.reporter = make_reporter(args, words, log)
    framed = leaf.timed and not any(getattr(args, name, None) for name in (*_NO_DOCUMENT, "detach"))
    framed = framed and (own_json or not as_json)
    started = time.monotonic()
    if framed:
        log.say(START, f"RUNNING | Command: {args.command}", source="tools")
    function = getattr(importlib.import_module(leaf.module, __package__), f"run_{leaf.name}")
    run = partial(_run, function, args, log, halve=not parser.halves)
    code = run() if not as_json else in_json(run, words, args.command, log, own=own_json)
    if args.reporter is not None and not args.reporter.written:
        log.warning("--report: nothing was judged, so that no report was written")
    if framed:
        verdict = "PASSED" if code == 0 else "FAILED"
        text = f"{verdict} | Runtime: {time.monotonic() - started:.3f}s | Command: {args.command}"
        (log.error if code else log.finish)(text, source="tools")
    sys.stdout.flush()
    return code


def _tell_early(error: LayerwiseError, words: str, argv: list[str]) -> None:
    """Print the document of --json, where that is asked for, of a command that did not begin."""
    if "--json" in argv[: next((n for n, word in enumerate(argv) if word in CHECK), len(argv))]:
        from layerwise._tool.tui.cli.json_output import Current, print_json

        Current.begin(words, shell_line(["layerwise", *words.split(), *argv]))
        print_json({"exit_code": error.exit_code, "passed": False, "error": str(error)}, "error")


def fill_parser(parser: Parser, leaf: Leaf) -> bool:
    """Declare all options of a command; whether it has a document of its own for `--json`.

    The others that do not print text for other programs are given `--json` here.
    """
    getattr(importlib.import_module(leaf.module, __package__), f"fill_{leaf.name}")(parser)
    own = any("--json" in action.option_strings for action in parser._actions)
    if not own and leaf.name not in TEXT_ALONE:
        parser.own(parser, "--json", action="store_true", help="print one JSON document instead of the text")
    LOGGING.add(parser)
    return own


def in_json(run: Callable[[], int], words: str, line: str, log: Log, *, own: bool) -> int:
    """Run a command that prints one JSON document, whatever happens: its own, or one of the lines that it prints."""
    import tempfile

    from layerwise._tool.tui.cli.json_output import Current, print_json

    Current.begin(words, line)
    if own:
        code = run()
        if code and not Current.printed:
            print_json({"exit_code": code, "passed": False, "error": log.failure}, "error")
        return code
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="backslashreplace") as out:  # workers take its number
        with contextlib.redirect_stdout(out):
            code = run()
        out.seek(0)
        lines = out.read().splitlines()
    print_json({"exit_code": code, "passed": code == 0, "output": lines, "error": log.failure})
    return code


def _tell_settings(log: Log) -> None:
    """Say what is wrong in the user's settings: one of them is where the workspace is."""
    if os.path.lexists(config_file()):
        from layerwise._tool.backends.settings import load_settings

        for problem in load_settings(project=False).problems:
            log.warning(problem)


def _run(function: Callable[[Namespace, Log], int], args: Namespace, log: Log, *, halve: bool) -> int:
    try:
        if halve and getattr(args, "fp_to_fp16", False) and args.model_file:
            from layerwise._tool.tui.cli.half import in_half

            with in_half(args, log) as half:
                return function(half, log)
        return function(args, log)
    except LayerwiseError as error:
        log.fatal(shown_lines(error))
        return _reported(args, str(error), error.exit_code)
    except (OSError, RuntimeError, MemoryError) as error:
        words = refusal(error)
        if not words:
            raise
        log.fatal(words)
        return _reported(args, words, 1)


def _reported(args: Namespace, error: str, code: int) -> int:
    """Have the reports say that the command could not be carried out; the exit code."""
    reporter = reporter_of(args)
    return code if reporter is None else reporter.failed(error, code)


def make_log(args: Namespace) -> Log:
    """The log that the logging options of `args` describe."""
    log = Log(colors="NO_COLOR" not in os.environ and "no-colors" not in args.log_format)
    log.levels = _levels(args)
    log.timestamp = "timestamp" in args.log_format
    log.line_info = "line-info" in args.log_format
    if args.log_file:
        log.open_file(args.log_file)
    return log


def _levels(args: Namespace) -> dict[str, int]:
    if args.silent:
        return {"": CRITICAL}
    levels = {"": INFO}
    for item in args.verbosity or []:
        path, _, name = item.rpartition(":")
        if name.upper() not in LEVELS:
            raise UsageError(f"--verbosity {shown(item, 60)}: the levels are {', '.join(LEVELS)}")
        levels[path.strip("/").removesuffix(".py")] = LEVELS[name.upper()]
    count = args.verbose + 2 * args.extra_verbose - args.quiet
    if count:
        levels[""] = sorted(LEVELS.values(), reverse=True)[max(0, min(len(LEVELS) - 1, count + 5))]
    return levels
