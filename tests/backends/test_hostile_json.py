"""Damaged files of saved data give an error that names the file, never a traceback or a hang."""

import json
import random
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.arrays import sample
from support.cpu_time import cpu_seconds

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.results.accuracy import (
    METRICS,
    AccuracyResult,
    AccuracyResults,
    MetricResult,
    MetricThreshold,
    SimpleResult,
)
from layerwise._tool.backends.results.inference import IterationResult, RunResults
from layerwise._tool.backends.saved_data.actions import action_inspect_data
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.tensors import TensorInfo

SECONDS = 5.0
INPUTS = [TensorInfo("X", "float32", ("N", "M")), TensorInfo("b", "bfloat16", None)]


def write_feeds(path: Path) -> None:
    feed = {"X": sample("float32", (4, 8)), "b": sample("bfloat16")}
    save_feeds(path, [feed | {"s": sample("string"), "i": sample("int4")}, feed])


def write_npz(path: Path) -> None:
    np.savez_compressed(path, X=sample("float32", (4, 8)), b=sample("float32"), i=sample("int64"))


def write_results(path: Path) -> None:
    outputs = {name: sample(name) for name in ("float32", "bfloat16", "string", "bool", "float8_e5m2")}
    each = [IterationResult(outputs, 0.5, "r"), IterationResult(outputs, None, "r")]
    RunResults([("r", each), ("r", each)]).save(path)


def write_accuracy(path: Path) -> None:
    values = dict.fromkeys(("max_absdiff", "max_reldiff"), 0.5)
    outputs: dict[str, Any] = {"Y": SimpleResult(values, stored=True), "Z": False}
    metrics = [{"Y": MetricResult(1.0, MetricThreshold(metric, 2.0))} for metric in METRICS.values()]
    AccuracyResults([AccuracyResult({("a", "b"): [outputs, *metrics]})]).save(path)


def flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(changed))] = rng.choice(b'\0\xff"{}[]:,0129eE-\\=Az\x1b')
    return bytes(changed)


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def move(data: bytes, rng: random.Random) -> bytes:
    begin, end = sorted(rng.randrange(len(data)) for _ in range(2))
    place = rng.randrange(len(data))
    return data[:place] + data[begin:end] + data[place:]


def drop(data: bytes, rng: random.Random) -> bytes:
    begin = rng.randrange(len(data))
    return data[:begin] + data[begin + rng.randint(1, 60) :]


def renumber(data: bytes, rng: random.Random) -> bytes:
    """Replace one number by an extreme one."""
    numbers = list(re.finditer(rb"-?\d+", data))
    if not numbers:
        return data
    found = rng.choice(numbers)
    huge = rng.choice([b"-1", b"99999999999999999999", b"1e999", b"NaN", b"4294967296", b"9" * 5000, b"[" * 3000])
    return data[: found.start()] + huge + data[found.end() :]


def reword(data: bytes, rng: random.Random) -> bytes:
    """Replace one word by another that means something in these formats."""
    words = list(re.finditer(rb"[A-Za-z_]{3,24}", data))
    if not words:
        return data
    found = rng.choice(words)
    other = rng.choice([b"ndarray", b"array", b"RunResults", b"lst", b"Tensor", b"null", b"outputs", b"dtype", b"F64"])
    return data[: found.start()] + other + data[found.end() :]


KINDS: dict[str, Callable[[Path], None]] = {
    "results.json": write_results,
    "results.safetensors": write_results,
    "feeds.json": write_feeds,
    "feeds.safetensors": write_feeds,
    "feeds.npz": write_npz,
    "accuracy.json": write_accuracy,
}
MUTATIONS = [flip, cut, move, drop, renumber, reword]


def read_everything(path: Path) -> None:
    """Use the file in all the ways there are."""
    context: Any = Quiet({"path": str(path), "all": True, "show_values": True, "histogram": True})
    action_inspect_data(context)
    for feed in make_feeds(FeedSpec(files=[str(path)]), INPUTS, lambda _: None):
        assert all(array.size >= 0 for array in feed.values())


class Quiet:
    """A job's context that checks its arguments."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params

    def log(self, text: str, level: str = "info") -> None:
        assert "\x1b" not in text

    def warn(self, text: str) -> None:
        assert "\x1b" not in text


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_give_an_error_that_names_them(
    tmp_path: Path, kind: str, mutation: Callable[[bytes, random.Random], bytes]
) -> None:
    path = tmp_path / kind
    KINDS[kind](path)
    good = path.read_bytes()
    rng = random.Random(f"{kind} {mutation.__name__}")
    refused = 0
    for _ in range(12):
        path.write_bytes(mutation(good, rng))
        begun = cpu_seconds()
        try:
            read_everything(path)
        except LayerwiseError as error:
            refused += 1
            assert str(path) in str(error), error
            assert "\x1b" not in str(error) and len(str(error)) < 2000
        assert cpu_seconds() - begun < SECONDS
    assert refused >= 1


@pytest.mark.parametrize("kind", KINDS)
def test_arbitrary_bytes_give_an_error_that_names_the_file(tmp_path: Path, kind: str) -> None:
    rng = random.Random(kind)
    path = tmp_path / kind
    for _ in range(5):
        path.write_bytes(rng.randbytes(rng.randrange(3000)))
        with pytest.raises(LayerwiseError, match=re.escape(str(path))):
            read_everything(path)


def test_non_regular_files_give_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path / "absent.npz", tmp_path / "absent.safetensors", tmp_path):
        with pytest.raises(LayerwiseError, match=re.escape(str(path))):
            read_everything(path)


@pytest.mark.parametrize("value", [[[1, 2], [3]], [1, [2, 3]], [[[1], [2, 3]]], {"a": 1}, ["x", 1], None, True, [], 2])
def test_values_that_are_not_arrays_are_rejected(tmp_path: Path, value: object) -> None:
    path = tmp_path / "feeds.json"
    path.write_text(json.dumps([{"x": value}]))
    with suppress(LayerwiseError):
        read_everything(path)
