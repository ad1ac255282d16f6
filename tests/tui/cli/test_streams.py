"""Streams that are closed, full or left by their reader cost a command neither its exit code nor its files."""

import fcntl
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from support.debugging import saved
from support.models import mlp, save

_SIDES = "bad.onnx --reference-model good.onnx --onnxrt"
COMMANDS = {
    "--help": 0,
    "inspect model good.onnx --show layers attrs weights": 0,
    f"run {_SIDES} --mark-all --save-outputs out.json": 1,
    "run good.onnx --no-such-option": 2,
}
STREAMS = {
    "nothing in": "<&-",
    "nothing out": ">&-",
    "no errors": "2>&-",
    "none at all": "<&- >&- 2>&-",
    "full": ">/dev/full",
    "errors to a full disk": "2>/dev/full",
    "both to a full disk": ">/dev/full 2>&1",
    "reader gone": "| true",
    "reader of one line": "| head -n 1",
    "reader of both gone": "2>&1 | true",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    saved(folder, mlp(), "/fc0/MatMul")
    return folder


OF_ALL = ("none at all", "both to a full disk", "reader of both gone")
"""Streams that every command meets; the one that inspects meets all."""
PAIRS = [pair for pair in product(COMMANDS, STREAMS) if pair[0].startswith("inspect") or pair[1] in OF_ALL]


@pytest.mark.parametrize(("command", "streams"), PAIRS)
def test_the_exit_code_is_the_verdict_whatever_the_streams_are(models: Path, command: str, streams: str) -> None:
    (models / "out.json").unlink(missing_ok=True)
    line = f"{sys.executable} -m layerwise {command} {STREAMS[streams]}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=models, env=os.environ, capture_output=True, text=True, timeout=60, check=False
    )
    lost = ">/dev/full" in STREAMS[streams].split() and COMMANDS[command] == 0
    assert done.returncode == (1 if lost else COMMANDS[command]), done.stderr
    assert "Traceback" not in done.stdout + done.stderr and "Exception" not in done.stderr
    assert ("cannot be written: No space left" in done.stderr) == (
        STREAMS[streams] == ">/dev/full" and COMMANDS[command] != 2
    )
    assert (models / "out.json").exists() == ("--save-outputs" in command)


def test_an_output_that_never_waits_gets_every_byte(models: Path) -> None:
    """Another program may have left the descriptor non-blocking; the reader is slower than the writer."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    room = fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    save(mlp(4, 40), models / "deep.onnx")
    words = [sys.executable, "-m", "layerwise", "inspect", "model", "deep.onnx", "--show", "layers", "attrs", "weights"]
    whole = subprocess.run(words, cwd=models, env=os.environ, capture_output=True, check=True).stdout
    script = "import sys; from layerwise._tool.tui.__main__ import main; sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen([sys.executable, "-c", script, *words[3:]], cwd=models, env=os.environ, stdout=write) as slow:
        os.close(write)
        found = b""
        while part := os.read(read, 100):
            found += part
    os.close(read)
    assert slow.returncode == 0 and found == whole
    assert len(whole) > room


@pytest.mark.parametrize(
    ("words", "code"), [("--version", 0), ("run --help", 0), ("run", 0), ("run nothing.onnx --onnxrt", 1)]
)
def test_what_is_to_be_done_at_the_end_is_done(tmp_path: Path, words: str, code: int) -> None:
    program = (
        "import threading, time; from layerwise._tool.tui.__main__ import run;"
        "threading.Thread(target=lambda: (time.sleep(0.05), print('waited for')), daemon=False).start();"
        "run()"
    )
    command = [sys.executable, "-c", program, *words.split()]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code
    assert "waited for\n" in done.stdout


def test_the_end_of_a_library_used_on_the_way_is_not_skipped(tmp_path: Path) -> None:
    program = (
        "import atexit, sys; from layerwise._tool.tui import __main__ as program; main = program.main;"
        "program.main = lambda: (atexit.register(print, 'tidied'), main(['--version']))[1]; program.run()"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "tidied")
