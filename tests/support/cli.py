"""The real commands, each in a process of its own."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from support import forkserver

Done = subprocess.CompletedProcess[str]
LIMIT = 120


def layerwise(*words: str | Path, cwd: Path, **options: object) -> Done:
    """Run `layerwise WORDS` in `cwd`: a fork of what has imported it, or, with options of subprocess, a new Python."""
    if options:
        return fresh_layerwise(*words, cwd=cwd, **options)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open() as nothing:
        streams = (nothing.fileno(), out.fileno(), err.fileno())
        program = forkserver.start([*map(str, words)], cwd, os.environ, streams)
        try:
            code = program.wait(LIMIT)
        finally:
            program.kill()
        return Done(["layerwise", *words], code, *map(_text, (out, err)))


def fresh_layerwise(*words: str | Path, cwd: Path, **options: object) -> Done:
    """Run `python -m layerwise WORDS` in `cwd`."""
    return _run([sys.executable, "-m", "layerwise", *map(str, words)], cwd, **options)


def polygraphy(*words: str | Path, cwd: Path) -> Done:
    """Run the real Polygraphy in `cwd`."""
    return _run([str(Path(sys.executable).with_name("polygraphy")), *map(str, words)], cwd)


def _run(command: list[str], cwd: Path, **options: object) -> Done:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=LIMIT, check=False, **options)  # type: ignore[call-overload,no-any-return]


def _text(file: "tempfile._TemporaryFileWrapper[bytes]") -> str:
    file.seek(0)
    return file.read().decode()
