"""`layerwise` beside the real Polygraphy: the same verdicts and errors on the same results, and each other's files."""

import contextlib
import io
import json
import math
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from polygraphy.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
from polygraphy.comparator import (
    Comparator,
    CosineSimilarityCompareFunc,
    DataLoader,
    L2CompareFunc,
    PsnrCompareFunc,
    RunResults,
    SimpleCompareFunc,
    SnrCompareFunc,
)
from polygraphy.json import load_json, save_json
from polygraphy.logger import G_LOGGER
from support.cli import layerwise, polygraphy
from support.heavy import heavy_model, light_model
from support.models import conv_net, mlp, node_cases

from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.action import compare
from layerwise._tool.debugtools.compare.spec import CompareSpec, ToleranceSpec
from layerwise.backend.onnxrt import OnnxrtRunner as OurRunner
from layerwise.backend.onnxrt import SessionFromOnnx as OurSession
from layerwise.comparator import Comparator as OurComparator
from layerwise.comparator import DataLoader as OurLoader
from layerwise.comparator import RunResults as OurResults
from layerwise.json import load_json as our_load
from layerwise.json import save_json as our_save
from layerwise.logger import G_LOGGER as OUR_LOGGER

NODES = [
    "test_softmax_axis_1", "test_layer_normalization_default_axis", "test_gelu_default_1", "test_matmul_3d",
    "test_conv_with_strides_padding", "test_gemm_all_attributes", "test_reduce_mean_default_axes_keepdims_random",
    "test_logsoftmax_axis_0", "test_batchnorm_example", "test_averagepool_2d_default", "test_erf", "test_tanh",
    "test_attention_4d", "test_lstm_defaults", "test_globalaveragepool",
]  # fmt: skip
LIGHT = ["squeezenet", "shufflenet"]
HEAVY = ["squeezenet", "shufflenet"]
METRICS = {
    "l2": (L2CompareFunc, "l2_norm", "l2"),
    "cosine_similarity": (CosineSimilarityCompareFunc, "cosine_similarity", "cosine"),
    "psnr": (PsnrCompareFunc, "psnr", "psnr"),
    "snr": (SnrCompareFunc, "snr", "snr"),
}
Outputs = dict[str, np.ndarray]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with (
        G_LOGGER.verbosity(G_LOGGER.CRITICAL), OUR_LOGGER.verbosity(), warnings.catch_warnings(),
        np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()),
    ):  # fmt: skip
        warnings.simplefilter("ignore")
        yield


def model_of(kind: str, name: str) -> onnx.ModelProto:
    if kind == "node":
        return node_cases()[name].model
    if kind == "made":
        return {"mlp": mlp, "conv_net": conv_net}[name]()
    return heavy_model(name) if kind == "heavy" else onnx.load(light_model(name))


def feeds_of(kind: str, name: str) -> list[Outputs] | None:
    return [node_cases()[name].feed] if kind == "node" else None


def perturbed(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The model with each floating weight a little off; its inputs serve where it has no weights."""
    other = onnx.ModelProto()
    other.CopyFrom(model)
    random = np.random.default_rng(seed)
    for weight in other.graph.initializer:
        array = numpy_helper.to_array(weight)
        if array.dtype == np.float32:
            noise = 1 + 1e-4 * random.standard_normal(array.shape)
            weight.CopyFrom(numpy_helper.from_array((array * noise).astype(np.float32), weight.name))
    return other


def theirs(model: onnx.ModelProto, path: Path, feeds: list[Outputs] | None) -> None:
    """Run by Polygraphy, saved by Polygraphy."""
    loader = feeds or DataLoader()
    Comparator.run([OnnxrtRunner(SessionFromOnnx(model.SerializeToString()))], data_loader=loader).save(str(path))


def ours(model: onnx.ModelProto, path: Path, feeds: list[Outputs] | None, **options: Any) -> None:
    """Run by us, saved by us."""
    runner = OurRunner(OurSession(model.SerializeToString(), **options))
    OurComparator.run([runner], data_loader=feeds or OurLoader()).save(path)


def unoptimised(model: onnx.ModelProto, feeds: list[Outputs] | None, a: Path, b: Path) -> None:
    ours(model, a, feeds, graph_optimization_level="disable")
    theirs(model, b, feeds)


def other_weights(model: onnx.ModelProto, feeds: list[Outputs] | None, a: Path, b: Path) -> None:
    theirs(perturbed(model, 3), a, feeds)
    off = [{k: v + 1e-4 if v.dtype == np.float32 else v for k, v in feed.items()} for feed in feeds] if feeds else None
    ours(model, b, off)


def round_trip(model: onnx.ModelProto, feeds: list[Outputs] | None, a: Path, b: Path) -> None:
    theirs(model, b, feeds)
    results = OurResults.load(b)
    for _, iterations in results:
        for outputs in iterations:
            for name, array in outputs.items():
                outputs[name] = array.astype(np.float16).astype(array.dtype) if array.dtype == np.float32 else array
    results.save(a)


VARIANTS: dict[str, Callable[..., None]] = {f.__name__: f for f in (unoptimised, other_weights, round_trip)}
CASES = [
    (kind, name)
    for kind, names in (("node", NODES), ("made", ["mlp", "conv_net"]), ("light", LIGHT), ("heavy", HEAVY))
    for name in names
]


def our_rows(a: Path, b: Path, atol: float, rtol: float) -> list[dict[str, Any]]:
    spec = CompareSpec(
        runners=[RunnerSpec(kind="saved", results=str(path)) for path in (a, b)],
        metrics=["simple", *METRICS],  # type: ignore[list-item]
        tolerance=ToleranceSpec(atol={"": atol}, rtol={"": rtol}),
        statistics=True,
    )
    params = msgspec.to_builtins(spec)
    folder, lock = Workspace().create(JobSpec(action="compare", params=params))
    try:
        context = JobContext(folder, 1)
        compare(context)
        return [e["row"] for e in read_events(folder) if e["type"] == "row" and e["table"] == "layers"]
    finally:
        os.close(lock)


def same(ours: float | None, theirs: float | None, what: str, tolerance: float = 1e-5) -> None:
    if ours is None or theirs is None or math.isnan(theirs):
        assert ours is None or math.isnan(ours), (what, ours, theirs)
        return
    assert ours == pytest.approx(theirs, rel=tolerance, abs=1e-12), what


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_same_verdicts_and_errors(kind: str, name: str, variant: str, tmp_path: Path) -> None:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    VARIANTS[variant](model_of(kind, name), feeds_of(kind, name), a, b)
    results = RunResults.load(str(a))
    results.extend(RunResults.load(str(b)))
    for atol, rtol in ((1e-5, 1e-5), (1e-3, 1e-3)):
        found = Comparator.compare_accuracy(
            results, compare_func=[SimpleCompareFunc(atol=atol, rtol=rtol), *(f() for f, _, _ in METRICS.values())]
        )
        rows = {row["tensor"]: row for row in our_rows(a, b, atol, rtol)}
        simple = next(iter(found[0].values()))[0]
        assert list(rows) == list(simple)
        for output, row in rows.items():
            check_row(row, [next(iter(result.values()))[0][output] for result in found], f"{name} {variant} {output}")


def check_row(row: dict[str, Any], found: list[Any], where: str) -> None:
    simple, *others = found
    assert row["metrics"]["simple"] == bool(simple), where
    same(row["max_abs"], simple.max_absdiff, f"{where} max abs", 1e-7)
    same(row["max_rel"], simple.max_reldiff, f"{where} max rel", 2e-7)
    same(row["mean_abs"], simple.mean_absdiff, f"{where} mean abs")
    for (metric, (_, field, column)), result in zip(METRICS.items(), others, strict=True):
        same(row[column], getattr(result, field), f"{where} {metric}", 1e-4)
        assert row["metrics"][metric] == bool(result), f"{where} {metric}"


def test_at_least_half_of_the_pairs_differ(tmp_path: Path) -> None:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    differ = 0
    for kind, name in CASES:
        for make in VARIANTS.values():
            make(model_of(kind, name), feeds_of(kind, name), a, b)
            first, second = (OurResults.load(path)[0][1][0] for path in (a, b))
            differ += any(not np.array_equal(first[output], second[output], equal_nan=True) for output in first)
    assert len(CASES) >= 20
    assert len(CASES) * len(VARIANTS) >= 60
    assert differ >= len(CASES) * len(VARIANTS) / 2


def test_the_same_synthetic_inputs(tmp_path: Path) -> None:
    model = conv_net()
    for number, (loader, other) in enumerate(
        [
            (DataLoader(iterations=3), OurLoader(iterations=3)),
            (DataLoader(seed=7, val_range=(-2, 5)), OurLoader(seed=7, val_range=(-2, 5))),
        ]
    ):
        theirs_path, ours_path = tmp_path / f"t{number}.json", tmp_path / f"o{number}.json"
        session = SessionFromOnnx(model.SerializeToString())
        Comparator.run([OnnxrtRunner(session)], data_loader=loader, save_inputs_path=str(theirs_path))
        runner = OurRunner(OurSession(model.SerializeToString()))
        OurComparator.run([runner], data_loader=other, save_inputs_path=str(ours_path))
        left, right = load_json(str(theirs_path)), load_json(str(ours_path))
        assert len(left) == len(right)
        for feed, our_feed in zip(left, right, strict=True):
            assert all(np.array_equal(feed[name], our_feed[name]) for name in feed)


@pytest.mark.parametrize("suffix", [".json", ""])
def test_command_lines_read_each_others_files(tmp_path: Path, suffix: str) -> None:
    onnx.save(conv_net(), tmp_path / "m.onnx")
    inputs, outputs = f"in{suffix}", f"out{suffix}"
    save = ("--onnxrt", "--iterations", "2", "--save-inputs", inputs, "--save-outputs", outputs)
    load = ("--onnxrt", "--load-inputs", inputs, "--load-outputs", outputs, "--save-accuracy-results", "acc.json")
    for writer, reader in ((polygraphy, layerwise), (layerwise, polygraphy)):
        folder = tmp_path / writer.__name__
        folder.mkdir()
        assert writer("run", "../m.onnx", *save, cwd=folder).returncode == 0
        done = reader("run", "../m.onnx", *load, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Passed: 2/2 iterations | Pass Rate: 100.00%" in done.stdout
        for tool in (polygraphy, layerwise):
            checked = tool("check", "accuracy", "acc.json", "--check-error-stat", "max", cwd=folder)
            assert checked.returncode == 0, checked.stdout + checked.stderr


def test_report_lines_are_the_same(tmp_path: Path) -> None:
    onnx.save(conv_net(), tmp_path / "m.onnx")
    onnx.save(perturbed(conv_net(), 1), tmp_path / "other.onnx")
    for name in ("m", "other"):
        assert (
            polygraphy("run", f"{name}.onnx", "--onnxrt", "--save-outputs", f"{name}.json", cwd=tmp_path).returncode
            == 0
        )
    line = (
        "run",
        "m.onnx",
        "--load-outputs",
        "m.json",
        "other.json",
        "--compare",
        "simple",
        "l2",
        "cosine_similarity",
        "psnr",
    )
    left, right = polygraphy(*line, cwd=tmp_path), layerwise(*line, cwd=tmp_path)
    assert left.returncode == right.returncode == 1
    kept = ("Tolerance:", "Minimum Required", "FAILED | Output", "L2 Norm", "Cosine", "PSNR", "Mismatched", "Summary")
    for ours_line, their_line in zip(*(report(done.stdout, kept) for done in (right, left)), strict=True):
        assert ours_line == their_line


def report(text: str, kept: tuple[str, ...]) -> list[str]:
    return [line for line in text.splitlines() if any(word in line for word in kept)]


def test_files_of_either_hold_the_same_json(tmp_path: Path) -> None:
    feeds = [{"x": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array([1, 2], np.int64)}]
    save_json(feeds, str(tmp_path / "theirs.json"))
    our_save(feeds, tmp_path / "ours.json")
    texts = [json.loads((tmp_path / f"{name}.json").read_text()) for name in ("theirs", "ours")]
    assert texts[0] == texts[1]
    assert np.array_equal(our_load(tmp_path / "theirs.json")[0]["x"], feeds[0]["x"])
