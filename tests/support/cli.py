"""The real commands, each in a process of its own."""

import subprocess
import sys
from pathlib import Path

Done = subprocess.CompletedProcess[str]


def layerwise(*words: str | Path, cwd: Path, **options: object) -> Done:
    """Run `python -m layerwise WORDS` in `cwd`."""
    return _run([sys.executable, "-m", "layerwise", *map(str, words)], cwd, **options)


def polygraphy(*words: str | Path, cwd: Path) -> Done:
    """Run the real Polygraphy in `cwd`."""
    return _run([str(Path(sys.executable).with_name("polygraphy")), *map(str, words)], cwd)


def _run(command: list[str], cwd: Path, **options: object) -> Done:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False, **options)  # type: ignore[call-overload,no-any-return]
