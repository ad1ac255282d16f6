"""Command-line tools over the API, and what extension modules of `layerwise run` rest on: `args`, `script`."""

from layerwise.tools.base import Tool

__all__ = ["Tool", "main"]


def main(run_opts: list[str] | None = None) -> int:
    """Run the command line of `layerwise` with these words, sys.argv's by default; the exit code."""
    from layerwise._tool.tui.__main__ import main as run

    return run(run_opts)
