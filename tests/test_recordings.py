"""The recordings: asciinema files that a player takes, of the whole loop, in less than two minutes."""

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "recordings"
LOOP = ["open", "compare", "first bad", "locate", "bisect by hand: the first question", "bisect by hand: found",
        "mend by surgery: the change on view", "mend by surgery: written", "compare again", "bundle"]  # fmt: skip


@pytest.mark.parametrize(("name", "steps"), [("loop", LOOP), ("slow", LOOP), ("first", [])])
def test_a_recording_is_whole(name: str, steps: list[str]) -> None:
    head, *events = map(json.loads, (FOLDER / f"{name}.cast").read_text(encoding="utf-8").splitlines())
    assert head["version"] == 2 and (head["width"], head["height"]) == (100, 30)
    times = [at for at, _, _ in events]
    assert times == sorted(times) and times[-1] < 120
    assert {kind for _, kind, _ in events} == {"o", "i", "m"}
    assert [text for _, kind, text in events if kind == "m"] == steps or not steps
    stills = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert re.findall(r"===== (.*) =====", stills) == steps or not steps
    assert not steps or ("One culprit" in stills and "The sides agree: 411 tensors" in stills)
    assert "Traceback" not in stills
