"""Writes a report in the format that a file's name asks for, whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.files import atomic_write, read_file
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.report.structure import Report

SUFFIXES = {".xml": "junit", ".junit": "junit", ".sarif": "sarif", ".md": "markdown", ".html": "html", ".htm": "html"}
KINDS = "JUnit (.xml), SARIF 2.1.0 (.sarif), Markdown (.md) or HTML (.html)"


def format_of(path: str) -> str:
    """The format by a file's name: junit, sarif, markdown or html. UsageError for any other.

    The summary of a job on GitHub has a name of its own, and is Markdown.
    """
    if _is_summary(path):
        return "markdown"
    name = path.lower().removesuffix(".json") if path.lower().endswith(".sarif.json") else path.lower()
    found = SUFFIXES.get(Path(name).suffix)
    if found is None:
        raise UsageError(f"{shown(path, 300)}: the name of a report ends in what it is: {KINDS}")
    return found


def write_report(report: Report, path: str | Path, root: Path) -> None:
    """Write the report. root: the folder that SARIF names files from. UsageError, OSError.

    What other steps wrote to the summary of a job on GitHub stays before it.
    """
    text = _WRITERS[format_of(str(path))](report, root)
    data = text.encode("utf-8", "backslashreplace")
    before = read_file(path) if _is_summary(str(path)) and Path(path).exists() else b""
    atomic_write(Path(path), before + data)


def _is_summary(path: str) -> bool:
    return bool(path) and path == os.environ.get("GITHUB_STEP_SUMMARY")


def _junit(report: Report, root: Path) -> str:
    from layerwise._tool.debugtools.report.junit import junit

    return junit(report)


def _sarif(report: Report, root: Path) -> str:
    from layerwise._tool.debugtools.report.sarif import sarif

    return sarif(report, root)


def _markdown(report: Report, root: Path) -> str:
    from layerwise._tool.debugtools.report.markdown import markdown

    return markdown(report)


def _html(report: Report, root: Path) -> str:
    from layerwise._tool.debugtools.report.html import html

    return html(report)


_WRITERS: dict[str, Callable[[Report, Path], str]] = {
    "junit": _junit, "sarif": _sarif, "markdown": _markdown, "html": _html,
}  # fmt: skip
