"""A machine that gives no more threads is no fault of a model: the right verdict, or a word of what is lacking."""

import json
import os
from pathlib import Path

import onnx
import pytest
from support import forkserver
from support.debugging import planted
from support.models import mlp

USER = 320_000
LINES = {
    "lint": "check lint good.onnx",
    "compatibility": "check compatibility good.onnx --onnxrt --onnx",
    "run": "run good.onnx --onnxrt --onnx",
    "mark-all": "run bad.onnx --reference-model good.onnx --onnxrt --mark-all",
    "locate": "debug locate bad.onnx --reference-model good.onnx --onnxrt",
    "reduce": "debug reduce bad.onnx --reference-model good.onnx --onnxrt -o made.onnx",
    "precision": "debug precision good.onnx --onnxrt --atol 1e-9 --rtol 1e-9 -o made.onnx",
    "opset": "convert good.onnx --opset 17 -o made.onnx",
    "edit": "surgeon edit good.onnx --delete /fc0/Relu --try -o made.onnx",
}


def run(words: str, folder: Path, count: int | None) -> tuple[int, str]:
    env = {**os.environ, "LAYERWISE_HOME": str(folder / "home"), "LAYERWISE_LEASES": str(folder / "leases")}
    before = "" if count is None else f"from support.few_processes import few_processes; few_processes({count}, {USER})"
    said = folder / "said"
    with Path(os.devnull).open() as nothing, said.open("wb") as out:
        program = forkserver.start(
            words.split(), folder, env, (nothing.fileno(), out.fileno(), out.fileno()), before=before
        )
        code = program.wait(60)
    return code, said.read_text()


def verdict(folder: Path) -> str | None:
    """What the newest job found, wherever it lies; None if it did not end well."""
    journals = sorted((folder / "home" / "jobs").glob("*/events.jsonl"), key=lambda path: int(path.parent.name))
    events = [json.loads(line) for line in journals[-1].read_text().splitlines()] if journals else []
    if not events or events[-1].get("state") != "done":
        return None
    result = next((event["data"] for event in events if event["type"] == "result"), {})
    found = {name: result.get(name) for name in ("passed", "failing", "n_failed", "first_bad", "found")}
    return json.dumps(found).replace(str(folder), "")


@pytest.mark.parametrize("name", LINES)
def test_the_verdict_is_right_or_what_lacks_is_said(name: str, tmp_path: Path) -> None:
    good = mlp()
    for count in (None, *range(1, 7), 32):
        folder = tmp_path / str(count)
        folder.mkdir()
        onnx.save(good, folder / "good.onnx")
        onnx.save(planted(good, "/fc1/Relu"), folder / "bad.onnx")
        code, said = run(LINES[name], folder, count)
        found = verdict(folder)
        assert count != 32 or found is not None, said
        if count is None:
            right = (code, found)
            continue
        assert "Traceback" not in said and "[Errno" not in said, said
        if found is None:
            assert code == 1 and "ulimit -u" in said, (count, said)
            assert not (folder / "made.onnx").exists()
        else:
            assert (code, found) == right, (count, said)
