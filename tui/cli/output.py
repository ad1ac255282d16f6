"""Files that commands write: another one is replaced, one that the command reads only with --overwrite."""

from collections.abc import Iterable
from pathlib import Path

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown


def replaces(output: str | Path | None, read: Iterable[str | Path | None], overwrite: bool) -> bool:
    """True: what is at `output` may be replaced. UsageError for a file among those `read`, without `overwrite`."""
    if output is None or overwrite or not Path(output).exists():
        return True
    for path in (Path(name) for name in read if name):
        if path.exists() and path.samefile(output):
            raise UsageError(f"{shown(str(output))} is read by this command: choose another name, or say --overwrite")
    return True
