"""The real commands, each in a process of its own."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from support import forkserver

Done = subprocess.CompletedProcess[str]
LIMIT = 120


def layerwise(*words: str | Path, cwd: Path, **options: object) -> Done:
    """Run `layerwise WORDS` in `cwd`: a fork of what has imported it, or, with options of subprocess, a new Python."""
    return fresh_layerwise(*words, cwd=cwd, **options) if options else fork_of("layerwise", words, cwd)


def layerwise_on_fake(*words: str | Path, cwd: Path, env: Mapping[str, str], **options: object) -> Done:
    """Run `layerwise WORDS` on the version of the fake TensorRT that `env` has: a fork of what has imported both.

    A new Python where it loads the real bindings or other libraries, or has options of subprocess.
    """
    if options or not env.keys().isdisjoint(("LAYERWISE_FAKE_TRT_FORWARD", "LD_LIBRARY_PATH")):
        return fresh_layerwise(*words, cwd=cwd, env=env, **options)
    return fork_of(f"layerwise {env['LAYERWISE_FAKE_TRT']}", words, cwd, env)


def run_script(*words: str | Path, cwd: Path | None = None) -> Done:
    """Run a Python script, the first of the words: a fork of what has imported onnx-graphsurgeon and no layerwise."""
    return fork_of("script", words, cwd or Path.cwd())


def fork_of(program: str, words: Sequence[str | Path], cwd: Path, env: Mapping[str, str] = os.environ) -> Done:
    """Run a program of support.forkserver to its end."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open() as nothing:
        streams = (nothing.fileno(), out.fileno(), err.fileno())
        running = forkserver.start([*map(str, words)], cwd, env, streams, program=program)
        try:
            code = running.wait(LIMIT)
        finally:
            running.kill()
        return Done([program, *map(str, words)], code, *map(_text, (out, err)))


def fresh_layerwise(*words: str | Path, cwd: Path, **options: object) -> Done:
    """Run `python -m layerwise WORDS` in `cwd`."""
    return _run([sys.executable, "-m", "layerwise", *map(str, words)], cwd, **options)


def polygraphy(*words: str | Path, cwd: Path) -> Done:
    """Run the real Polygraphy in `cwd`: a fork of what has imported it."""
    return fork_of("polygraphy", words, cwd)


def _run(command: list[str], cwd: Path, **options: object) -> Done:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=LIMIT, check=False, **options)  # type: ignore[call-overload,no-any-return]


def _text(file: "tempfile._TemporaryFileWrapper[bytes]") -> str:
    file.seek(0)
    return file.read().decode()
