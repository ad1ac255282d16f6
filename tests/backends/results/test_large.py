"""Large result files are written once and atomically, on file systems with and without hole collapsing."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import safetensors
from polygraphy.comparator import RunResults as TheirResults

from layerwise._tool.backends.filesystem import unnamed_files as unnamed
from layerwise._tool.backends.formats.dumps import DumpReader, DumpWriter
from layerwise._tool.backends.results.inference import IterationResult, RunResults
from layerwise._tool.backends.results.io import load_results

LARGE = 300_000  # float64 elements: 2.4 MB


@pytest.fixture(params=["disk", "memory", "no unnamed files", "no links"])
def folder(request: pytest.FixtureRequest, on_disk: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folders on a normal disk, without hole collapsing, without unnamed files, and without links."""
    if request.param == "no unnamed files":
        monkeypatch.setattr(unnamed, "FLAG", None)
    if request.param == "no links":
        monkeypatch.setattr(os, "link", refuse)
    if request.param != "memory":
        yield on_disk
        return
    shared = Path("/dev/shm") / f"layerwise-{os.getpid()}"
    if not shared.parent.is_dir():
        pytest.skip("no file system in memory here")
    shared.mkdir()
    yield shared
    for path in shared.iterdir():
        path.unlink()
    shared.rmdir()


def refuse(*_: object, **__: object) -> None:
    raise PermissionError


def results(*sizes: int) -> RunResults:
    """A runner for each size, two iterations of two tensors."""
    random = np.random.default_rng(0)
    made = RunResults()
    for place, size in enumerate(sizes):
        outputs = [{"a": random.random(size), "b": np.arange(place + 3)} for _ in range(2)]
        made.append(f"runner {place}", [IterationResult(found, 0.5, f"runner {place}") for found in outputs])
    return made


@pytest.mark.parametrize("name", ["out.json", "out.safetensors"])
def test_large_results_are_read_by_us_and_polygraphy(folder: Path, name: str) -> None:
    assert_read(folder, name, (LARGE, 5, LARGE))


@pytest.mark.parametrize("sizes", [(LARGE, LARGE), (5, LARGE), (LARGE, LARGE, 5), (LARGE,)])
@pytest.mark.parametrize("name", ["out.json", "out.safetensors"])
def test_large_results_may_be_anywhere_among_small_ones(on_disk: Path, name: str, sizes: tuple[int, ...]) -> None:
    assert_read(on_disk, name, sizes)


def assert_read(folder: Path, name: str, sizes: tuple[int, ...]) -> None:
    wanted, path = results(*sizes), folder / name
    path.write_text("what was there before")
    wanted.save(path)
    assert [entry.name for entry in folder.iterdir()] == [name]
    loaded = [load_results(path)] + ([TheirResults.load(str(path))] if name == "out.json" else [])
    for found in loaded:
        for (_, got), (_, its) in zip(found.items(), wanted.items(), strict=True):
            for a, b in zip(got, its, strict=True):
                outputs = a.outputs if found is loaded[0] else a
                assert all(np.array_equal(outputs[key], b.outputs[key]) for key in b.outputs)
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_large_file_has_at_most_spaces_between_runners(folder: Path) -> None:
    results(LARGE, LARGE).save(folder / "ours.json")
    text = (folder / "ours.json").read_text()
    assert len(json.loads(text)["lst"]) == 2
    theirs = folder / "theirs.json"
    found = TheirResults.load(str(folder / "ours.json"))
    found.save(str(theirs))
    assert "".join(text.split()) == "".join(theirs.read_text().split())
    assert len(text) - theirs.stat().st_size < 1 << 16


def test_safetensors_reads_large_dumps_and_long_headers(folder: Path) -> None:
    array = np.random.default_rng(0).random(LARGE * 2)
    for name, count in (("few", 2), ("many", 5000)):
        with DumpWriter(folder / name) as writer:
            writer.add("large", array)
            for number in range(count):
                writer.add(f"tensor {number}", np.array([number], np.int16))
        with safetensors.safe_open(folder / name, "numpy") as opened:
            assert np.array_equal(opened.get_tensor("large"), array)
            assert opened.get_tensor(f"tensor {count - 1}").tolist() == [count - 1]
        assert np.array_equal(DumpReader(folder / name).array("large"), array)


@pytest.mark.parametrize("name", ["out.json", "out.safetensors"])
def test_a_failed_write_leaves_nothing(folder: Path, name: str) -> None:
    class Breaks(dict[str, np.ndarray]):
        def items(self):  # type: ignore[no-untyped-def]
            yield "a", np.zeros(LARGE)
            raise RuntimeError("stop")

    broken = results(LARGE)
    broken.append("other", [IterationResult(Breaks(), None, "other")])
    (folder / name).write_text("what was there before")
    with pytest.raises(RuntimeError, match="stop"):
        broken.save(folder / name)
    assert [entry.read_text() for entry in folder.iterdir()] == ["what was there before"]


WRITES_AND_WAITS = """
import sys, numpy as np
from layerwise._tool.backends.results.writer import open_results_writer
with open_results_writer(sys.argv[1], ["first", "second"]) as writer:
    for number in range(20):
        for runner in (0, 1):
            writer.add(0, runner, f"t{number}", np.random.random(1 << 18))
    print("written", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files have names here")
@pytest.mark.parametrize("name", ["out.json", "out.safetensors"])
def test_a_killed_writer_leaves_nothing(on_disk: Path, name: str) -> None:
    command = [sys.executable, "-c", WRITES_AND_WAITS, str(on_disk / name)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"written\n"
        writer.kill()
    assert not list(on_disk.iterdir())
