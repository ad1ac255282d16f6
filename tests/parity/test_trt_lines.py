"""Polygraphy's command lines with its name changed, on the fake TensorRT 10 and 11: same exit code, engines, lines.

The table is trt_lines.txt. Engines of the fake say what they were built from, and are compared by it.
"""

import _ctypes
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import copyfile

import pytest
from parity.lines import TRT_TABLE, Line
from support.lines_compared import assert_as_told, contents
from support.plans import plan_header
from support.two_files import make_files
from support.two_programs import TwoPrograms
from trt.stubs import build

LINES = [(11 if command.startswith("11 ") else 10, line) for command, found in TRT_TABLE.items() for line in found]
Programs = Callable[[int], TwoPrograms]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("named")
    make_files(folder)
    copyfile(_ctypes.__file__, folder / "lib.so")  # any library, in place of plugins
    return folder


@pytest.fixture(scope="module")
def originals(files: Path) -> dict[str, bytes]:
    return contents(files)


@pytest.fixture(scope="module")
def programs(files: Path) -> Programs:
    """Both programs on a version of TensorRT."""
    try:
        build.cudart()
    except build.Unavailable as reason:
        pytest.skip(str(reason))
    return partial(TwoPrograms, files)


@pytest.mark.parametrize(("version", "line"), LINES, ids=[f"{version} {line.words}" for version, line in LINES])
def test_a_command_line_does_what_it_does_in_polygraphy(
    version: int, line: Line, programs: Programs, originals: dict[str, bytes]
) -> None:
    assert_as_told(line, programs(version), originals, scripts=True)


def tactics(engine: Path) -> list[int]:
    """The choices of the layers of an engine of the fake."""
    return [layer["tactic"] for layer in plan_header(engine)["layers"]]


def test_tactic_replays_are_exchanged(programs: Programs, tmp_path: Path) -> None:
    """What Polygraphy has sorted we build from, and it from what we save."""
    both = programs(10)
    words = "debug build m.onnx --until 2 --save-tactics r.json --artifacts r.json polygraphy_debug.engine --check true"
    theirs = both.run("polygraphy", words.split(), tmp_path / "p")
    assert theirs.code == 0, theirs.said
    kept = sorted((theirs.folder / "polygraphy_artifacts" / "good").iterdir())
    replays, engines = [[file for file in kept if file.suffix == kind] for kind in (".json", ".engine")]
    assert len(replays) == len(engines) == 2
    load = ["convert", "m.onnx", "--load-tactics"]
    ours = both.again("layerwise", [*load, str(replays[0]), "-o", "o.engine", "--save-tactics", "o.json"], theirs)
    assert ours.code == 0, ours.said
    assert tactics(ours.folder / "o.engine") == tactics(engines[0])
    assert json.loads((ours.folder / "o.json").read_text()) == json.loads(replays[0].read_text())
    back = both.again("polygraphy", [*load, "o.json", "-o", "b.engine"], theirs)
    assert back.code == 0 and tactics(back.folder / "b.engine") == tactics(engines[0]), back.said
    shown = both.again("layerwise", ["inspect", "tactics", "o.json"], theirs)
    assert shown.said.count("Layer: ") == 4
