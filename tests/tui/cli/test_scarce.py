"""A machine without threads or room is no fault of a model: the right verdict, or a word of what is lacking."""

import json
import os
import re
from pathlib import Path

import onnx
import pytest
from support import forkserver
from support.debugging import planted
from support.models import mlp

USER = 320_000
WHOLE = ("run", "reduce", "triage")
"""Commands that meet every limit; of the others each meets every second one."""
ALONE = pytest.mark.skipif(os.geteuid() != 0, reason="needs a user without other processes")
LINES = {
    "lint": "check lint good.onnx",
    "compatibility": "check compatibility good.onnx --onnxrt --onnx",
    "invariants": "check invariants good.onnx",
    "run": "run good.onnx --onnxrt --onnx",
    "mark-all": "run bad.onnx --reference-model good.onnx --onnxrt --mark-all",
    "locate": "debug locate bad.onnx --reference-model good.onnx --onnxrt",
    "reduce": "debug reduce bad.onnx --reference-model good.onnx --onnxrt -o made.onnx",
    "precision": "debug precision good.onnx --onnxrt --atol 1e-9 --rtol 1e-9 -o made.onnx",
    "opset": "convert good.onnx --opset 17 -o made.onnx",
    "triage": "triage bad.onnx --reference-model good.onnx --onnxrt --tries 2 -o made",
    "edit": "surgeon edit good.onnx --delete /fc0/Relu --try -o made.onnx",
}


def run(words: str, folder: Path, before: str) -> tuple[int, str]:
    env = {**os.environ, "LAYERWISE_HOME": str(folder / "home"), "LAYERWISE_LEASES": str(folder / "leases")}
    read, write = os.pipe()
    with Path(os.devnull).open() as nothing, os.fdopen(read, "rb") as said:
        program = forkserver.start(words.split(), folder, env, (nothing.fileno(), write, write), before=before)
        os.close(write)
        text = said.read().decode()
        return program.wait(60), text


def verdict(folder: Path) -> str | None:
    """What the job found, wherever it lies; None if it did not end well."""
    journal = folder / "home" / "jobs" / "1" / "events.jsonl"
    events = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    if not events or events[-1].get("state") != "done":
        return None
    result = next((event["data"] for event in events if event["type"] == "result"), {})
    found = {name: result.get(name) for name in ("passed", "failing", "n_failed", "first_bad", "found", "suspect")}
    return json.dumps(found).replace(str(folder), "")


def processes(count: int) -> str:
    return f"from support.few_processes import few_processes; few_processes({count}, {USER})"


def bytes_a_file(count: int) -> str:
    limit = "resource.RLIMIT_FSIZE"
    return f"import resource; resource.setrlimit({limit}, ({count}, {count}))"


SCARCE = {
    "threads": ([*map(processes, range(1, 7))], processes(32), r"ulimit -u"),
    "room": (
        [*map(bytes_a_file, (0, 1000, 4000, 8000, 20_000, 50_000))], bytes_a_file(10_000_000),
        r"space left|room on the disk|[Ff]ile too large|did not fit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", [pytest.param("threads", marks=ALONE), "room"])
@pytest.mark.parametrize("name", LINES)
def test_the_verdict_is_right_or_what_lacks_is_said(name: str, what: str, tmp_path: Path) -> None:
    limits, enough, words = SCARCE[what]
    if name not in WHOLE:  # one half of the limits or the other
        limits = limits[list(LINES).index(name) % 2 :: 2]
    good = mlp()
    right = None
    for number, before in enumerate(["", *limits, enough]):
        folder = tmp_path / str(number)
        folder.mkdir()
        onnx.save(good, folder / "good.onnx")
        onnx.save(planted(good, "/fc1/Relu"), folder / "bad.onnx")
        code, said = run(LINES[name], folder, before)
        found = verdict(folder)
        right = right or (code, found)
        assert "Traceback" not in said and "[Errno" not in said, said
        if found is None:
            assert before not in ("", enough) and code == 1 and re.search(words, said), (before, said)
            assert not (folder / "made.onnx").exists() and not (folder / "made").exists()
        else:
            assert (code, found) == right, (before, said)
