"""`check invariants`: leaks planted in networks are found at their node, and none is claimed of clean models.

Clean: the small models of the tests, lookalikes of well-known exports, our own networks and the folder's. Nine of
them and the folder's then get a leak of every kind behind a tensor that is drawn, and a session that keeps
a count between its runs. A leak without effect on the outputs is told apart. --cuda: all of it on a GPU.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx
from support import invariants as small
from support.faults import zoo
from support.faults.zoo.build import Sample
from support.faults.zoo.masked import MASKS, masked
from support.lookalikes import LOOKALIKES
from support.wrapped_runner import WrappedRunner

from benchmarks.verdicts.leaks import LEAK, LEAKS, leaking, places
from benchmarks.verdicts.pairs import Options, written
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.checks.invariants.action import check
from layerwise._tool.debugtools.checks.invariants.spec import InvariantsResult, InvariantsSpec, RelationRow

_NO_EFFECT = 2e-5
_STATE = "state kept between runs"
_LEAKY, _LEAKY_LOOKALIKES = ("mlp", "image", "heads", "gru", "flat tokens"), ("bert", "vit", "key_padding")


def main(options: Options) -> bool:
    """Measure and print; whether nothing is claimed of clean models and every leak with an effect is at its node."""
    runner = RunnerSpec(kind="onnxrt", providers=["cuda"], tf32=False) if options.cuda else RunnerSpec(kind="onnxrt")
    claimed, clean = 0, 0
    for name, model in _clean(options):
        with written(Sample(model, {})) as files:
            result, rows = _checked(files.model, runner)
        clean += result is not None
        broken = [row for row in rows if row.status == "broken"]
        claimed += bool(broken)
        if broken or result is None:
            print(f"{'CLAIMED' if broken else 'left out'} {name}: {result and result.conclusion}", flush=True)
    print(f"clean models {clean}, a broken relation claimed in {claimed}", flush=True)
    counts: Counter[tuple[str, str]] = Counter()
    for name, model in _leaky(options):
        for kind, told in _plants(name, model, runner, options):
            counts[kind, told] += 1
    for kind in (*LEAKS, _STATE):
        print(
            f"{kind}: " + ", ".join(f"{told} {count}" for (own, told), count in sorted(counts.items()) if own == kind)
        )
    return not claimed and not sum(count for (_, told), count in counts.items() if told not in ("located", "no effect"))


def _clean(options: Options) -> Iterator[tuple[str, onnx.ModelProto]]:
    yield from ((name, small.model(text)) for name, text in small.PLAIN.items())
    yield "attention", small.attention()
    yield from ((name, make()) for name, make in LOOKALIKES.items())
    yield from ((name, build(True).model) for name, build in zoo.BUILDERS.items())
    yield from ((kind, masked(kind).model) for kind in MASKS)
    yield from _folder(options)


def _leaky(options: Options) -> Iterator[tuple[str, onnx.ModelProto]]:
    yield from ((name, small.model(small.PLAIN[name])) for name in _LEAKY)
    yield "attention", small.attention()
    yield from ((name, LOOKALIKES[name]()) for name in _LEAKY_LOOKALIKES)
    yield from _folder(options)


def _folder(options: Options) -> Iterator[tuple[str, onnx.ModelProto]]:
    for path in sorted(options.models.glob("*.onnx")) if options.models else ():
        if not options.only or path.stem in options.only:
            yield path.stem, onnx.load(path)


def _plants(name: str, model: onnx.ModelProto, runner: RunnerSpec, options: Options) -> Iterator[tuple[str, str]]:
    drawn = random.Random(f"{options.seed}{name}")
    with written(Sample(model, {})) as files:
        try:
            found = places(str(files.model))
        except LayerwiseError as problem:
            print(f"left out: leaks in {name}: {str(problem)[:160]}", flush=True)
            return
        for kind, (_, least) in LEAKS.items():
            fit = sorted(tensor for tensor, shape in found.items() if len(shape) >= least)
            if not fit or not options.asked(kind):
                continue
            tensor = drawn.choice(fit)
            onnx.save(leaking(model, tensor, found[tensor], kind), files.model)
            result, rows = _checked(files.model, runner)
            yield kind, _told(name, kind, tensor, result, rows)
        if not options.asked(_STATE):
            return
        onnx.save(model, files.model)
        result, rows = _checked(files.model, runner, Counting)
        hit = any(row.relation == "repeated runs" and row.status == "broken" for row in rows)
        yield _STATE, "located" if hit else "MISSED"


def _told(name: str, kind: str, tensor: str, result: InvariantsResult | None, rows: list[RelationRow]) -> str:
    broken = [row for row in rows if row.status == "broken"]
    if any(row.where and row.where.node == LEAK for row in broken) and result and f"'{LEAK}'" in result.conclusion:
        return "located"
    largest = max((row.rel for row in rows), default=0.0)
    if not broken and largest < _NO_EFFECT:
        return "no effect"
    print(f"MISSED {name}, {kind} behind {tensor}: {result and result.conclusion[:200]}", flush=True)
    return "found elsewhere" if broken else "MISSED"


def _checked(path: Path, runner: RunnerSpec, opened: Any = None) -> tuple[InvariantsResult | None, list[RelationRow]]:
    rows: list[RelationRow] = []

    def keep(table: str, row: Any) -> None:
        if table == "relations":
            rows.append(row)

    how = {"open_session": opened} if opened else {}
    try:
        return check(InvariantsSpec(model=str(path), runner=runner), keep, **how), rows
    except LayerwiseError as problem:
        print(f"refused: {str(problem)[:160]}", flush=True)
        return None, rows


class Counting(WrappedRunner):
    """A session that adds to what it gives for each of its runs: 2^-10 of it, or 2^-4 in 16 bits, beyond rounding."""

    def __init__(self, spec: RunnerSpec, loadable: Loadable) -> None:
        super().__init__(open_runner(spec, loadable, name="model"))
        self._runs = 0

    def infer(self, feed: Mapping[str, Any], outputs: Any = None) -> IterationResult:
        """Run, and count."""
        self._runs += 1
        found = self.runner.infer(feed, outputs).outputs
        grown = {
            name: array * array.dtype.type(1 + self._runs * (2.0**-4 if array.dtype.itemsize == 2 else 2.0**-10))
            for name, array in found.items()
            if array.dtype.kind == "f"
        }
        return IterationResult({**found, **grown})
