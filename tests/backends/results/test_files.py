"""Run results and accuracy results: incremental writing, and files that Polygraphy and we both read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from polygraphy.comparator import AccuracyResults as TheirAccuracy
from polygraphy.comparator import IterationResult as TheirIteration
from polygraphy.comparator import RunResults as TheirResults
from support.arrays import NAMES, same, sample

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.results.accuracy import (
    METRICS,
    AccuracyResult,
    AccuracyResults,
    MetricResult,
    MetricThreshold,
    SimpleResult,
)
from layerwise._tool.backends.results.inference import IterationResult, RunResults, Stored, StoredOutputs
from layerwise._tool.backends.results.io import load_accuracy, load_results
from layerwise._tool.backends.results.writer import open_results_writer

NAMES_OF_RUNNERS = ("onnxrt-runner-N0-11/20/26-22:48:09", 'b "quoted"\n')


def make(iterations: int = 2) -> RunResults:
    results = RunResults()
    for runner, name in enumerate(NAMES_OF_RUNNERS):
        each = [
            IterationResult({"Y": sample("float32", (1, 2, 2, 3), i + runner), "é": sample("int64")}, 0.25 * i, name)
            for i in range(iterations)
        ]
        results.append(name, each)
    return results


def polygraphys(results: RunResults) -> TheirResults:
    theirs = TheirResults()
    for name, its in results.items():
        theirs.append((name, [TheirIteration(dict(it.outputs), it.runtime, name) for it in its]))
    return theirs


def assert_same(ours: RunResults, wanted: RunResults) -> None:
    assert ours.keys() == wanted.keys()
    for (_, got), (_, its) in zip(ours.items(), wanted.items(), strict=True):
        assert [it.runtime for it in got] == [it.runtime for it in its]
        for a, b in zip(got, its, strict=True):
            assert list(a.outputs) == list(b.outputs)
            assert all(same(np.asarray(a.outputs[name]), b.outputs[name]) for name in b.outputs)


@pytest.mark.parametrize("iterations", [0, 1, 3])
def test_the_json_equals_polygraphys_byte_for_byte(tmp_path: Path, iterations: int) -> None:
    results = make(iterations)
    results.append("empty", [IterationResult({}, None, "empty")])
    results.save(tmp_path / "ours.json")
    polygraphys(results).save(str(tmp_path / "theirs.json"))
    assert (tmp_path / "ours.json").read_bytes() == (tmp_path / "theirs.json").read_bytes()
    RunResults().save(tmp_path / "none.json")
    assert (tmp_path / "none.json").read_text() == TheirResults().to_json()


@pytest.mark.parametrize("target", ["a.json", "a.safetensors", "folder"])
def test_all_formats_round_trip(tmp_path: Path, target: str) -> None:
    results = make()
    results.save(tmp_path / target)
    loaded = load_results(tmp_path / target)
    assert_same(loaded, results)
    assert loaded[0][1].runner_name == NAMES_OF_RUNNERS[0]
    assert loaded[NAMES_OF_RUNNERS[1]] is loaded[1]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", ["a.json", "a.safetensors", "folder"])
def test_every_type_keeps_its_name(tmp_path: Path, target: str, name: str) -> None:
    results = RunResults([("r", [IterationResult({"x": sample(name)}, 1.0, "r")])])
    results.save(tmp_path / target)
    outputs = load_results(tmp_path / target)[0][0].outputs
    assert isinstance(outputs, StoredOutputs) and isinstance(outputs.stored["x"], Stored)
    assert outputs.stored["x"].dtype == name
    assert same(np.asarray(outputs["x"]), sample(name))


def test_results_are_exchanged_with_polygraphy(tmp_path: Path) -> None:
    results = make()
    results.save(tmp_path / "ours")
    joined = TheirResults.concat(TheirResults.load_streaming(str(tmp_path / "ours")))
    assert joined == polygraphys(results)
    for number, one in enumerate(joined.split()):
        (tmp_path / "theirs").mkdir(exist_ok=True)
        one.save(str(tmp_path / "theirs" / f"{number:010d}.json"))
    assert_same(load_results(tmp_path / "theirs"), results)


def test_runners_may_interleave(tmp_path: Path) -> None:
    results = make()
    for target in ("a.json", "a.safetensors", "folder"):
        with open_results_writer(tmp_path / target, NAMES_OF_RUNNERS) as writer:
            for iteration in range(2):
                for name in ("Y", "é"):
                    for runner in (1, 0):
                        writer.add(iteration, runner, name, results[runner][iteration].outputs[name])
                for runner in (1, 0):
                    writer.finish(iteration, runner, results[runner][iteration].runtime)
        assert_same(load_results(tmp_path / target), results)


@pytest.mark.parametrize("target", ["a.json", "a.safetensors", "folder"])
def test_a_failure_leaves_nothing_behind(tmp_path: Path, target: str) -> None:
    with pytest.raises(KeyError), open_results_writer(tmp_path / target, ["a", "b"]) as writer:
        for runner in (0, 1):
            writer.add(0, runner, "Y", np.zeros(1000))
        raise KeyError
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="twice"), open_results_writer(tmp_path / target, ["a"]) as writer:
        writer.add(0, 0, "Y", np.zeros(3))
        writer.add(0, 0, "Y", np.zeros(3))
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import resource, numpy as np\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from layerwise._tool.backends.results.writer import open_results_writer\n"
        f"with open_results_writer({str(tmp_path / 'a.json')!r}, ['a', 'b']) as writer:\n"
        "    for runner in (0, 1):\n"
        "        writer.add(0, runner, 'Y', np.zeros(1 << 18))\n"
        "        writer.finish(0, runner, 0.0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1 and "OSError" in done.stderr and "File too large" in done.stderr
    assert not list(tmp_path.iterdir())


def test_folders_must_be_empty_and_parents_are_made(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "file").touch()
    for path in ("full", "file"):
        with pytest.raises(UsageError):
            make().save(tmp_path / path)
    make().save(tmp_path / "missing" / "a.json")
    assert (tmp_path / "missing" / "a.json").is_file()


def test_large_results_need_little_memory(tmp_path: Path) -> None:
    script = (
        "import resource, sys, numpy as np\n"
        "from layerwise._tool.backends.results.writer import open_results_writer\n"
        "from layerwise._tool.backends.results.io import load_results\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "with open_results_writer(sys.argv[1], ['a', 'b']) as writer:\n"
        "    for k in range(100):\n"
        "        for r in (0, 1): writer.add(0, r, str(k), np.full(1 << 17, k, np.float64))\n"
        "    for r in (0, 1): writer.finish(0, r, 0.1)\n"
        "total = sum(a.nbytes for _, its in load_results(sys.argv[1]).items() for a in its[0].outputs.values())\n"
        "print(total, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "big.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    total, grown = map(int, done.stdout.split())
    assert total == 200 << 20
    assert grown < 90 << 10  # KiB: what may wait for the disk, and a tensor


def test_errors_say_what_other_files_are(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(BadFile, match="not saved outputs"):
        load_results(tmp_path / "a.json")
    make().save(tmp_path / "b.json")
    with pytest.raises(BadFile, match="not saved accuracy"):
        load_accuracy(tmp_path / "b.json")
    with pytest.raises(UsageError, match="onnxrt-runner-N0"):
        make()["absent"]
    with pytest.raises(BadFile, match="No such file"):
        load_results(tmp_path / "absent.json")


def test_joining_runs_matches_runners_by_name() -> None:
    joined = RunResults.concat([make(1), make(2)])
    assert [len(its) for _, its in joined.items()] == [3, 3]
    assert joined.keys() == list(NAMES_OF_RUNNERS)


def accuracy() -> AccuracyResults:
    pair = ("a", "b")
    stats = {f"{stat}_{kind}": 0.5 for stat in ("max", "mean", "median") for kind in ("absdiff", "reldiff")}
    simple = SimpleResult({**stats, "quantile_absdiff": None, "quantile_reldiff": None}, stored=False)
    results = [AccuracyResult({pair: [{"Y": simple, "Z": False}]})]
    for metric in METRICS.values():
        values: tuple[float, ...] = (0.05, float("inf"), float("nan"), 50.0)
        each = [{"Y": MetricResult(value, MetricThreshold(metric, metric.default))} for value in values]
        results.append(AccuracyResult({pair: each}))
    return AccuracyResults(results)


def test_accuracy_results_are_exchanged_with_polygraphy(tmp_path: Path) -> None:
    ours = accuracy()
    ours.save(tmp_path / "a.json")
    theirs = TheirAccuracy.load(str(tmp_path / "a.json"))
    assert bool(theirs) == ours.passed
    for mine, other in zip(ours.results, theirs, strict=True):
        assert mine.stats(("a", "b")) == other.stats(("a", "b"))
    theirs.save(str(tmp_path / "b.json"))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    again = load_accuracy(tmp_path / "b.json")
    again.save(tmp_path / "c.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "c.json").read_bytes()


def test_verdicts_and_averages_follow_the_thresholds() -> None:
    pair = ("a", "b")
    l2, lpips = METRICS["l2"], METRICS["perceptual_metrics"]
    each = [{"Y": MetricResult(value, MetricThreshold(l2, 1.0))} for value in (0.5, 1.5)]
    result = AccuracyResult({pair: each})
    assert result.stats(pair) == (1, 1, 2) and not result.passed
    result.aggregation = "average"
    assert result.passed
    assert not MetricResult(None, MetricThreshold(lpips, 0.1)).passed  # Polygraphy passes what it could not compute
    assert not MetricResult(float("nan"), MetricThreshold(l2, 1.0)).passed
    with pytest.raises(UsageError, match="no metrics to average"):
        AccuracyResult({pair: [{"Y": False}]}).average(pair)
    elementwise = accuracy().results[0].pairs[pair][0]["Y"]
    assert isinstance(elementwise, SimpleResult)
    with pytest.raises(UsageError, match="elemwise"):
        _ = SimpleResult(elementwise.values).passed


def test_a_real_polygraphy_run_is_exchanged_both_ways(tmp_path: Path) -> None:
    """The real tool's own run: written by it, read by us, written by us, read by it."""
    command = [sys.executable, "-c", REAL_RUN, str(tmp_path)]
    subprocess.run(command, check=True, timeout=120, capture_output=True, env={**os.environ})
    results = load_results(tmp_path / "outputs.json")
    assert len(results) == 2 and len(results[0]) == 2
    results.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads((tmp_path / "outputs.json").read_text())
    assert load_accuracy(tmp_path / "accuracy.json").passed


REAL_RUN = """
import sys, onnx
from onnx import helper as h
value = lambda name: h.make_tensor_value_info(name, 1, [2, 3])
graph = h.make_graph([h.make_node("Relu", ["X"], ["Y"])], "g", [value("X")], [value("Y")])
model = h.make_model(graph, ir_version=8, opset_imports=[h.make_opsetid("", 17)])
folder = sys.argv[1]
onnx.save(model, folder + "/m.onnx")
argv = ["polygraphy", "run", folder + "/m.onnx", "--onnxrt", "--onnxrt"]
argv += ["--iterations", "2", "--compare", "simple", "l2"]
for option in ("inputs", "outputs"):
    argv += [f"--save-{option}", f"{folder}/{option}.json"]
argv += ["--save-accuracy-results", f"{folder}/accuracy.json"]
sys.argv = argv
from polygraphy.tools._main import main
sys.exit(main())
"""
