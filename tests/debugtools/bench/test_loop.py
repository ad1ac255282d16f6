"""The measured loop, the figures made of it, and what is said of two runs."""

import gc
import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.models import mlp

from layerwise._tool.backends.bench.loop import MOST_RUNS, BenchPlan, measure
from layerwise._tool.backends.bench.timed import Setup, Timing, open_subject
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.bench.statistics import compare, mann_whitney, statistics

LATENCIES = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=200)


class Counting:
    """Counts its runs, and fails at one of them if asked to."""

    phases: tuple[str, ...] = ("compute",)

    def __init__(self, fails_at: int = 0) -> None:
        self.runs, self.fails_at, self.collecting = 0, fails_at, False

    def run(self) -> Timing:
        start = time.perf_counter()
        self.runs += 1
        self.collecting = self.collecting or gc.isenabled()
        if self.runs == self.fails_at:
            raise LayerwiseError("the node Boom failed")
        end = time.perf_counter()
        return start, end, end - start

    def outputs(self) -> dict[str, Any]:
        return {}


@given(iterations=st.integers(1, 50), warm_ups=st.integers(0, 20), streams=st.integers(1, 4))
@settings(max_examples=8)
def test_every_run_is_counted_once_as_warm_up_or_as_measured(iterations: int, warm_ups: int, streams: int) -> None:
    timed = [Counting() for _ in range(streams)]
    found = measure(timed, BenchPlan(warm_up=0, warm_up_runs=warm_ups, duration=0, iterations=iterations))
    assert [len(stream) for stream in found.streams] == [iterations] * streams
    assert sum(one.runs for one in timed) == found.runs + found.warm_ups
    assert found.warm_ups == streams * max(1, warm_ups)
    assert not any(one.collecting for one in timed) and gc.isenabled()
    starts = [timing[0] for timing in found.timings()]
    assert starts == sorted(starts)
    for stream in found.streams:
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(stream))


def test_a_duration_is_reached_though_the_iterations_were_sooner() -> None:
    timed = Counting()
    found = measure([timed], BenchPlan(warm_up=0.02, duration=0.05, iterations=1))
    assert found.runs > 1 and found.seconds >= 0.05
    assert found.warm_ups > 1


def test_there_is_a_pause_where_one_is_asked_for() -> None:
    found = measure([Counting()], BenchPlan(warm_up=0, duration=0, iterations=5, idle=0.002))
    assert all(after[0] - before[1] >= 0.002 for before, after in itertools.pairwise(found.streams[0]))


def test_progress_is_told_rarely_and_between_runs() -> None:
    told: list[tuple[float, int]] = []
    plan = BenchPlan(warm_up=0, duration=0.6, iterations=1)
    found = measure([Counting()], plan, lambda part, runs: told.append((part, runs)))
    assert 1 <= len(told) <= 2
    assert all(0 < part <= 1 and runs <= found.runs for part, runs in told)


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("fails_at", [1, 5])
def test_what_a_run_raises_ends_all_streams(streams: int, fails_at: int) -> None:
    timed = [Counting(fails_at if number == 0 else 0) for number in range(streams)]
    with pytest.raises(LayerwiseError, match="Boom"):
        measure(timed, BenchPlan(warm_up=0, warm_up_runs=3, duration=3600, iterations=10))
    assert gc.isenabled()


def test_a_bench_without_end_ends_before_memory_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layerwise._tool.backends.bench.loop.MOST_RUNS", 100)
    found = measure([Counting()], BenchPlan(warm_up=0, duration=3600, iterations=10))
    assert found.runs == 100 < MOST_RUNS and found.cut


def test_rounds_of_the_same_streams_add_up() -> None:
    timed = [Counting(), Counting()]
    plan = BenchPlan(warm_up=0, duration=0, iterations=3)
    first, second = measure(timed, plan), measure(timed, plan)
    seconds = first.seconds + second.seconds
    first.add(second)
    assert (first.runs, first.warm_ups, first.seconds) == (12, 4, seconds)


def test_it_does_what_a_loop_written_by_hand_does(tmp_path: Path) -> None:
    """The same number of real runs, with the same results; each timed run lies within the loop."""
    path = tmp_path / "mlp.onnx"
    onnx.save(mlp(), path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feed = {node.name: np.ones([dim if isinstance(dim, int) else 1 for dim in node.shape], np.float32)
            for node in session.get_inputs()}  # fmt: skip
    by_hand, times = [], []
    for _ in range(40):
        start = time.perf_counter()
        by_hand = session.run(None, feed)
        times.append(time.perf_counter() - start)
    subject = open_subject(RunnerSpec(kind="onnxrt"), Loadable(path=path), Setup(), "ours")
    timed = subject.streams(feed, 1)
    begin = time.perf_counter()
    found = measure(timed, BenchPlan(warm_up=0, duration=0, iterations=40))
    end = time.perf_counter()
    subject.close()
    assert found.runs == len(times) == 40
    for name, ours in timed[0].outputs().items():
        position = [node.name for node in session.get_outputs()].index(name)
        np.testing.assert_array_equal(ours, by_hand[position])
    assert all(begin <= start < stop <= end for start, stop, *_ in found.streams[0])
    assert sum(stop - start for start, stop, *_ in found.streams[0]) <= found.seconds <= end - begin


# ── figures ──


@given(LATENCIES, st.lists(st.floats(0, 100), min_size=1, max_size=5))
def test_percentiles_are_measured_values_in_order(values: list[float], percents: list[float]) -> None:
    found = statistics(values, sorted(percents))
    listed = list(found.percentiles.values())
    assert listed == sorted(listed) and set(listed) <= set(values)
    assert found.min <= found.median <= found.max
    assert found.min == min(values) and found.max == max(values)
    assert found == statistics(values[::-1], sorted(percents)) or found.mean == pytest.approx(np.mean(values))


@pytest.mark.parametrize(
    ("count", "percent", "place"), [(10, 90, 8), (100, 99, 99), (100, 90, 89), (1, 50, 0), (3, 0, 0)]
)
def test_percentiles_are_trtexecs(count: int, percent: float, place: int) -> None:
    """By sampleReporting.cpp's findPercentile, worked out in single precision."""
    found = statistics(list(range(count)), [percent])
    assert found.percentiles == {f"{percent}": place}


# ── significance ──


def noisy(seed: int, count: int = 400, scale: float = 1.0) -> Sequence[float]:
    return list(scale * np.random.default_rng(seed).lognormal(0, 0.05, count))


@given(seed=st.integers(0, 10_000), scale=st.sampled_from([0.5, 0.8, 1.2, 2.0]))
@settings(max_examples=15)
def test_a_clear_difference_is_told_whichever_side_it_is_on(seed: int, scale: float) -> None:
    there, back = compare(noisy(seed, scale=scale), noisy(seed + 1)), compare(noisy(seed + 1), noisy(seed, scale=scale))
    assert there.verdict == ("faster" if scale < 1 else "slower")
    assert {there.verdict, back.verdict} == {"faster", "slower"}
    assert there.low <= scale <= there.high or there.ratio == pytest.approx(scale, rel=0.03)
    assert there.ratio * back.ratio == pytest.approx(1)
    assert f"is {there.verdict} than old by" in there.words("new", "old")


def test_runs_of_the_same_thing_rarely_differ() -> None:
    verdicts = [compare(noisy(2 * seed), noisy(2 * seed + 1)).verdict for seed in range(200)]
    assert verdicts.count("no difference") >= 180


def test_nothing_is_said_of_too_few_runs() -> None:
    found = compare(noisy(0, count=5), noisy(1, scale=3.0))
    assert found.verdict == "too few" and "too few runs" in found.words("a", "b")


def test_one_interruption_changes_no_verdict() -> None:
    """A median of batches does not see a run that took a thousand times as long."""
    interrupted = [1000.0 * value if place == 17 else value for place, value in enumerate(noisy(3))]
    assert compare(interrupted, noisy(4)).verdict == compare(noisy(3), noisy(4)).verdict


@pytest.mark.parametrize("shift", [0.0, 0.5, 1.5])
def test_the_p_value_is_near_that_of_all_arrangements(shift: float) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.normal(0, 1, 7), rng.normal(shift, 1, 6)
    together = np.concatenate([a, b])
    middle = 7 * (13 + 1) / 2
    ranks = np.argsort(np.argsort(together)) + 1.0
    seen = abs(ranks[:7].sum() - middle)
    sums = [abs(sum(chosen) - middle) for chosen in itertools.combinations(ranks, 7)]
    exact = float(np.mean([total >= seen for total in sums]))
    assert mann_whitney(a, b) == pytest.approx(exact, abs=0.03)


def test_all_equal_is_no_difference() -> None:
    assert compare([1.0] * 100, [1.0] * 100).verdict == "no difference"
