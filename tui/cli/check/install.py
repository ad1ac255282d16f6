"""`layerwise check install`: what is installed here, what fits together, and which extra brings what is missing.

It starts no process and imports no engine; `layerwise doctor` says the same first, and tries it.
"""

import platform
from argparse import Namespace
from typing import Any

from layerwise._tool import VERSION
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.json_output import print_json
from layerwise._tool.tui.cli.options.report import REPORT
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.reports import Reporter, reporter_of


def fill_install(parser: Parser) -> None:
    parser.epilog = (
        "Exit code: 0 all that is installed fits together, 1 something does not. Nothing is required.\n"
        "`layerwise doctor` also tries it, and looks at GPUs, terminal, workspace and settings."
    )
    parser.own(parser, "--json", action="store_true", help="print one JSON document instead of the text")
    REPORT.add(parser, parser)


def run_install(args: Namespace, log: Log) -> int:
    """Say what is installed; 1 if two onnxruntimes are, or one that this driver is too old for."""
    from layerwise._tool.backends import installed

    engine, driver = installed.onnxruntime(), installed.driver_cuda()
    wrong = faults()
    if reporter := reporter_of(args):
        _report(reporter, wrong)
    if args.json:
        return _document(args, wrong)
    log.info(f"{installed.distribution()} {VERSION}, Python {platform.python_version()}")
    missing = f"not installed: {installed.install_line('onnxruntime')}"
    log.info(f"onnxruntime: {engine_text(engine.names, engine.cuda) if engine else missing}")
    log.info(f"NVIDIA driver: {f'supports CUDA up to {dotted(driver)}' if driver else 'none found'}")
    for package in installed.packages():
        log.info(f"{package.name}: {package.version or f'not installed: {package.install}'}")
    for text in wrong:
        log.error(shown(text, 1000))
    return 1 if wrong else 0


def _report(reporter: Reporter, wrong: list[str]) -> None:
    """What fits together, and each package that is there or is not."""
    from layerwise._tool.backends import installed
    from layerwise._tool.debugtools.report.structure import Case, Section

    fits = [Case(name=f"{number}. fits together", outcome="failed", message=text, rule="install/conflict")
            for number, text in enumerate(wrong, 1)]  # fmt: skip
    packages = [
        Case(name=package.name, outcome="passed" if package.version else "skipped", rule="install/missing",
             message="" if package.version else f"not installed: {package.install}",
             figures={"version": package.version or ""}) for package in installed.packages()
    ]  # fmt: skip
    good = [Case(name="what is installed fits together", outcome="passed")]
    code = 1 if wrong else 0
    reporter.sections("install", [Section("conflicts", fits or good), Section("packages", packages)], code)


def faults() -> list[str]:
    """What does not fit together, each with what mends it."""
    from layerwise._tool.backends import installed

    return [text for text in (installed.both(), installed.doubled(), _broken(), installed.too_new()) if text]


def _broken() -> str:
    from layerwise._tool.backends import installed

    engine = installed.onnxruntime()
    if engine is None or engine.whole:
        return ""
    return f"files of onnxruntime are missing, install it again: {installed.install_line('onnxruntime')}"


def engine_text(names: tuple[str, ...], cuda: tuple[int, int] | None) -> str:
    """An onnxruntime: its distributions and the CUDA it is built for."""
    kind = f"for CUDA {dotted(cuda)}" if cuda else "without CUDA"
    return f"{' and '.join(names) or 'of no distribution'}, {kind}"


def dotted(version: tuple[int, int]) -> str:
    """`13.0`."""
    return ".".join(map(str, version))


def _document(args: Namespace, wrong: list[str]) -> int:
    from layerwise._tool.backends import installed

    engine, driver = installed.onnxruntime(), installed.driver_cuda()
    found: dict[str, Any] = {
        "command": args.command, "exit_code": 1 if wrong else 0, "distribution": installed.distribution(),
        "version": VERSION, "python": platform.python_version(),
        "onnxruntime": {"names": engine.names, "cuda": engine.cuda and dotted(engine.cuda)} if engine else None,
        "driver_cuda": driver and dotted(driver),
        "packages": {package.name: package.version or None for package in installed.packages()}, "wrong": wrong,
    }  # fmt: skip
    print_json(found)
    return int(found["exit_code"])
