"""The timing loop: warm-up, then runs until both a number and a duration are reached, on one or more streams."""

import gc
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from layerwise._tool.backends.bench.timed import Timed, Timing
from layerwise._tool.backends.garbage import not_collecting

MOST_RUNS = 1_000_000
_TICK = 0.25

Tick = Callable[[float, int], None]


@dataclass(frozen=True)
class BenchPlan:
    """When to stop. warm_up (seconds) and warm_up_runs must both be reached before runs count; at least one run.

    duration (seconds) and iterations must both be reached, per stream. idle: seconds between two runs.
    """

    warm_up: float = 0.2
    warm_up_runs: int = 0
    duration: float = 3.0
    iterations: int = 10
    idle: float = 0.0


@dataclass
class Measured:
    """Timings: `streams` holds those of each stream in order, `seconds` is the wall time of all.

    warm_ups: runs that were not counted. cut: stopped early, at MOST_RUNS.
    """

    streams: list[list[Timing]] = field(default_factory=list)
    seconds: float = 0.0
    warm_ups: int = 0
    cut: bool = False

    @property
    def runs(self) -> int:
        return sum(map(len, self.streams))

    def timings(self) -> list[Timing]:
        """All timings, sorted by start."""
        return sorted(timing for stream in self.streams for timing in stream)

    def add(self, other: "Measured") -> None:
        """Append another round of the same streams."""
        self.streams = [mine + more for mine, more in zip(self.streams, other.streams, strict=True)]
        self.seconds += other.seconds
        self.warm_ups += other.warm_ups
        self.cut = self.cut or other.cut


def measure(streams: Sequence[Timed], plan: BenchPlan, tick: Tick = lambda fraction, runs: None) -> Measured:
    """Run all streams concurrently by `plan`, with garbage collection off. An exception of any run ends all.

    tick: called occasionally between two runs of the first stream, with the fraction done (0 to 1) and its run count.
    """
    loop = _Loop(plan, len(streams), tick)
    gc.collect()
    with not_collecting():  # like `timeit`: a collection would distort some runs
        if len(streams) == 1:
            loop.work(0, streams[0])
        else:
            threads = [threading.Thread(target=loop.work, args=pair, daemon=True) for pair in enumerate(streams)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    if loop.error is not None:
        raise loop.error
    return loop.measured()


class _Loop:
    def __init__(self, plan: BenchPlan, count: int, tick: Tick) -> None:
        self._plan, self._tick = plan, tick
        self._timings: list[list[Timing]] = [[] for _ in range(count)]
        self._most = MOST_RUNS // count
        self._barrier = threading.Barrier(count)
        self._warm_ups = [0] * count
        self.error: BaseException | None = None

    def work(self, number: int, timed: Timed) -> None:
        """Run one stream from warm-up to end."""
        try:
            self._warm_ups[number] = self._warm_up(timed)
            self._barrier.wait()
            self._measure(timed, self._timings[number], self._tick if number == 0 else None)
        except threading.BrokenBarrierError:
            return
        except Exception as error:  # raised again by `measure`, in its own thread
            self.error = self.error or error
            self._barrier.abort()

    def _warm_up(self, timed: Timed) -> int:
        end = time.perf_counter() + self._plan.warm_up
        for runs in count(1):
            timed.run()
            if self.error or (runs >= self._plan.warm_up_runs and time.perf_counter() >= end):
                return runs
        raise AssertionError

    def _measure(self, timed: Timed, timings: list[Timing], tick: Tick | None) -> None:
        plan, run = self._plan, timed.run
        begin = told = 0.0
        while self.error is None and len(timings) < self._most:
            timing = run()
            timings.append(timing)
            now = timing[1]
            begin, told = begin or timing[0], told or timing[0]
            if now - begin >= plan.duration and len(timings) >= plan.iterations:
                return
            if tick is not None and now - told >= _TICK:
                told = now
                tick(self._done(now - begin, len(timings)), len(timings))
            if plan.idle:
                time.sleep(plan.idle)

    def _done(self, seconds: float, runs: int) -> float:
        parts = [seconds / self._plan.duration] if self._plan.duration else []
        return min([1.0, *parts, runs / max(1, self._plan.iterations)])

    def measured(self) -> Measured:
        filled = [timings for timings in self._timings if timings]
        first, last = min(t[0][0] for t in filled), max(t[-1][1] for t in filled)
        cut = any(len(timings) >= self._most for timings in filled)
        return Measured(self._timings, last - first, sum(self._warm_ups), cut)
