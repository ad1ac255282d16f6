"""Repeats a comparison whose layers are near their bounds, each time under conditions that draw the rounding anew."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.debugtools.baseline.measure import Key, by_layer, errors_of, times_of
from layerwise._tool.debugtools.baseline.repetition import Repeated, beyond, enough
from layerwise._tool.debugtools.baseline.rows import KeptLayer
from layerwise._tool.debugtools.baseline.run import read_inputs, repeat_rows
from layerwise._tool.debugtools.compare.arithmetic.nudge import nudged
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_THREADS = (1, 2, 3, 4)


def settle(
    context: "JobContext", spec: CompareSpec, inputs: Path | None, near: Mapping[Key, KeptLayer], times: int | None
) -> dict[Key, Repeated]:
    """Repeat a comparison and tell of each layer whether it stays beyond its limits.

    inputs: of the comparison. Every repetition moves floating inputs by one rounding and takes another number of
    threads. near: the layers, as the baseline has them. times: how often, None until the answers are sure.
    """
    values: dict[Key, list[float]] = {key: [] for key in near}
    number = 0
    while number < times if times is not None else any(not enough(found, 1.0) for found in values.values()):
        context.progress(number, times, "repetitions", "layers near their bounds are repeated")
        rows = by_layer(repeat_rows(context, varied(spec, number), _moved(context, inputs, number)))
        for key, old in near.items():
            values[key].append(_times(rows[key], old) if key in rows else math.inf)
        number += 1
    return {key: beyond(found, 1.0) for key, found in values.items() if found}


def varied(spec: CompareSpec, number: int) -> CompareSpec:
    """The comparison with another number of threads for sides that run on the CPU."""
    threads = _THREADS[number % len(_THREADS)]
    runners = [
        replace(runner, threads=threads) if runner.kind == "onnxrt" and runner.threads is None else runner
        for runner in spec.runners
    ]
    return replace(spec, runners=runners)


def _times(rows: Sequence[LayerRow], old: KeptLayer) -> float:
    """How many times its limits a layer is; an output that fails its tolerance, as it did not, is beyond them."""
    error, peak, broken = errors_of(rows)
    by = times_of(error, peak, broken, old)
    fails = bool(old.passed) and any(row.passed is False for row in rows)
    return 2.0 + by if fails else by


def _moved(context: "JobContext", inputs: Path | None, number: int) -> Path | None:
    """The inputs, moved by one rounding, as a file of the job."""
    if inputs is None:
        return None
    path = context.artifacts / f"repeated-{number}.safetensors"
    path.unlink(missing_ok=True)
    feeds = read_inputs(inputs)
    save_feeds(path, [{name: nudged(array, number + 1) for name, array in feed.items()} for feed in feeds])
    return path
