"""The recordings: asciinema files that a player takes, of the whole loop, in less than two minutes."""

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "recordings"
LOOP = {
    "open": "model.onnx  411 nodes", "compare": "done: 411 rows", "first bad": "▌ ✗   172 Softmax",
    "locate": "✗ #172 Softmax /encoder/layer.3/attention/self/Softmax is wrong by itself",
    "bisect by hand: the first question": "question 1 of about 9, waiting for you",
    "bisect by hand: found": "One culprit: /encoder/layer.3/attention/self/Softmax",
    "mend by surgery: the change on view": "axis 2 becomes -1", "mend by surgery: written": "1 edit, written",
    "compare again": "The sides agree: 411 tensors", "bundle": "bundle written; its script fails on its own",
}  # fmt: skip
"""Each step, and what its still shows."""


@pytest.mark.parametrize(("name", "steps"), [("loop", LOOP), ("slow", LOOP), ("first", {})])
def test_a_recording_is_whole(name: str, steps: dict[str, str]) -> None:
    head, *events = map(json.loads, (FOLDER / f"{name}.cast").read_text(encoding="utf-8").splitlines())
    assert head["version"] == 2 and (head["width"], head["height"]) == (100, 30)
    times = [at for at, _, _ in events]
    assert times == sorted(times) and times[-1] < 120
    assert {kind for _, kind, _ in events} == {"o", "i", "m"}
    assert [text for _, kind, text in events if kind == "m"] == [*steps] or not steps
    stills = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    named = re.split(r"^===== (.*) =====$", stills, flags=re.MULTILINE)[1:]
    shown = dict(zip(named[::2], named[1::2], strict=True))
    assert {step: seen in shown[step] for step, seen in steps.items()} == dict.fromkeys(steps, True)
    assert [*shown] == [*steps] or not steps
    assert "Traceback" not in stills
