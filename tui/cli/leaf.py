"""Runs one command: its parser, its log, the frame of RUNNING and PASSED lines."""

import importlib
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable

from layerwise._tool.backends.errors import LayerwiseError, UsageError, refusal
from layerwise._tool.backends.filesystem.places import config_file
from layerwise._tool.backends.log import CRITICAL, INFO, LEVELS, START, Log
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.tui.cli.options.logging import LOGGING
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.registry import Leaf
from layerwise._tool.tui.cli.reports import make_reporter, reporter_of


def run_leaf(words: str, leaf: Leaf, argv: list[str]) -> int:
    """Parse `argv` with the options of `leaf` and run it; the exit code. Raises LayerwiseError for user errors
    of parsing; those of running are logged."""
    module = importlib.import_module(leaf.module, __package__)
    parser = Parser(f"layerwise {words}", leaf.summary)
    getattr(module, f"fill_{leaf.name}")(parser)
    LOGGING.add(parser)
    args = parser.parse_args(argv)
    log = make_log(args)
    if getattr(args, "json", False):
        log.only_errors_to_stderr()
    _tell_settings(log)
    args.words = ["layerwise", *words.split(), *argv]
    args.command = shell_line(args.words)
    args.reporter = make_reporter(args, words, log)
    framed = leaf.timed and not any(getattr(args, name, None) for name in ("gen_script", "detach", "nsys"))
    started = time.monotonic()
    if framed:
        log.say(START, f"RUNNING | Command: {args.command}", source="tools")
    code = _run(getattr(module, f"run_{leaf.name}"), args, log, halve=not parser.halves)
    if args.reporter is not None and not args.reporter.written:
        log.warning("--report: nothing was judged, so that no report was written")
    if framed:
        verdict = "PASSED" if code == 0 else "FAILED"
        text = f"{verdict} | Runtime: {time.monotonic() - started:.3f}s | Command: {args.command}"
        (log.error if code else log.finish)(text, source="tools")
    sys.stdout.flush()
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
