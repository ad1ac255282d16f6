"""Tactic replays as the real Polygraphy prints and compares them; it needs a tensorrt for the names of types alone."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.cli import Done, layerwise

TENSORRT = """
import enum
__version__ = "10.0.0"
class DataType(enum.Enum):
    FLOAT, HALF, INT8 = 0, 1, 2
"""


def tensor(dtype: str = "FLOAT", strides: tuple[int, ...] = (150528, 50176, 224, 1), dim: int | None = -1) -> Any:
    fields = {"dtype": f"DataType.{dtype}", "strides": list(strides), "vectorized_dim": dim}
    return {**fields, "components_per_element": 1, "polygraphy_class": "TensorInfo"}


def algorithm(tactic: int, dtype: str = "FLOAT") -> Any:
    fields = {"implementation": 2147483657, "tactic": tactic, "inputs": [tensor(dtype)]}
    return {**fields, "outputs": [tensor(dtype, (1,), None), tensor(dtype, ())], "polygraphy_class": "Algorithm"}


def replay(path: Path, **layers: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"replay": layers, "polygraphy_class": "TacticReplayData"}, indent=4))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tactics")
    (place / "stub" / "tensorrt").mkdir(parents=True)
    (place / "stub" / "tensorrt" / "__init__.py").write_text(TENSORRT)
    replay(place / "replays" / "good" / "0.json", conv=algorithm(1), pool=algorithm(5), fc=algorithm(9))
    replay(place / "replays" / "good" / "deep" / "1.json", conv=algorithm(2), pool=algorithm(5, "HALF"))
    replay(place / "replays" / "bad" / "0.json", conv=algorithm(2), pool=algorithm(6, "HALF"), new=algorithm(-3))
    (place / "replays" / "bad" / "notes.txt").write_text("no replay")
    replay(place / "replays" / "good" / "empty.json")
    return place


def polygraphy(*words: str, cwd: Path) -> Done:
    """The real one, with a tensorrt that has nothing but the names of data types."""
    command = [str(Path(sys.executable).with_name("polygraphy")), *words]
    environment = {**os.environ, "PYTHONPATH": str(cwd / "stub")}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False)


def lines(done: Done) -> list[str]:
    """What was said, the tools' own frame left out; indented as it is."""
    assert done.returncode == 0, done.stdout + done.stderr
    noise = ("[W] 'colored' module", "[I] Loading tactic replay file from")
    return [line for line in done.stdout.splitlines() if not line.startswith(noise)]


@pytest.mark.parametrize("name", ["good/0.json", "bad/0.json", "good/empty.json"])
def test_a_replay_as_text(name: str, folder: Path) -> None:
    words = ("inspect", "tactics", f"replays/{name}")
    assert lines(layerwise(*words, cwd=folder)) == lines(polygraphy(*words, cwd=folder))


@pytest.mark.parametrize(
    "words",
    [
        ("--dir", "replays"),
        ("--good", "replays/good", "--bad", "replays/bad"),
        ("--good", "replays/good/0.json", "--bad", "replays/bad/0.json"),
        ("--good", "replays/bad", "--bad", "replays/bad"),
    ],
)
def test_tactics_that_only_bad_builds_have(words: tuple[str, ...], folder: Path) -> None:
    ours = lines(layerwise("inspect", "diff-tactics", *words, cwd=folder))
    assert ours == lines(polygraphy("inspect", "diff-tactics", *words, cwd=folder))
    assert len(ours) >= 3


def test_nothing_to_compare_with(tmp_path: Path) -> None:
    replay(tmp_path / "replays" / "good" / "0.json", conv=algorithm(1))
    done = layerwise("inspect", "diff-tactics", "--dir", "replays", cwd=tmp_path)
    assert done.returncode == 0 and "Could not determine potentially bad tactics." in done.stdout
    for words in ((), ("--good", "replays/good"), ("--dir", "nowhere"), ("--good", "replays", "--bad", "nowhere")):
        assert layerwise("inspect", "diff-tactics", *words, cwd=tmp_path).returncode == 2


def test_two_builds_layer_by_layer(folder: Path) -> None:
    done = layerwise("debug", "diff-tactics", "replays/good/0.json", "replays/bad/0.json", cwd=folder)
    assert done.returncode == 0
    assert "tactic 1 → 2" in done.stdout and "tactic 5 → 6" in done.stdout
    assert "layers only in the first: 1" in done.stdout and "layers only in the second: 1" in done.stdout
    diff = layerwise("inspect", "diff", "replays/good/0.json", "replays/bad/0.json", cwd=folder)
    assert diff.returncode == 1 and "tactic 1 → 2" in diff.stdout


def test_a_file_that_is_no_replay_is_named(folder: Path) -> None:
    done = layerwise("inspect", "tactics", "replays/bad/notes.txt", cwd=folder)
    assert done.returncode == 1 and "notes.txt" in done.stderr
