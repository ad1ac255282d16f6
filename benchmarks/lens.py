"""The lens (`debug precision --to`), measured.

`python -m benchmarks.lens exact [COUNT]`: fake quantisation of every format on COUNT values (a million) beside onnx's
reference operators, ml_dtypes' casts and the nodes of the switchboard in onnxruntime; how many differ in a bit.

`python -m benchmarks.lens choice MODEL.onnx… [--to FORMAT] [--sets N]`: the cheapest set for a bound of half the error
that all nodes make, beside N random sets that cost less (how many of them keep the bound), and how many runs it took
beside keeping one node after another, each time the best of all that are left.

`python -m benchmarks.lens models MODEL.onnx… [--to FORMAT] [--alone N] [--sets N]`: every candidate on the switchboard,
beside quantise, open and run for each (timed on N of them, all counted); how far the two disagree, relative to the
effect or to 1e-6 of the output; how many of N random sets of 2, 5 and half are predicted within 15 %; peak memory over
that of a process that opens and runs the float model. Inputs: MODEL.onnx.npz where it is there, else planned. Of
several models it ends by what they come to, and with 1 if that is not what docs/quantising.md says.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from support.faults.ours import run_action
from support.quantising import disagreements

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.onnxrt.saturation import SETTING
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search.lens.lens import Lens
from layerwise._tool.debugtools.search.lens.spec import Bound, LensSpec, Rounding
from layerwise._tool.debugtools.search.lens.writing import mixed_model
from layerwise._tool.surgery.feeds.planned import planned
from layerwise._tool.surgery.quantise.formats import FORMATS

ORT = RunnerSpec(kind="onnxrt")
_NOISE = 1e-6
_MARK = "#found "
Feed = dict[str, NDArray[Any]]


def exact(count: int) -> bool:
    """Compare all formats; whether no value differs."""
    good = True
    for name in FORMATS:
        with warnings.catch_warnings(action="ignore"):
            found = disagreements(name, count)
        good &= not any(found.values())
        print(
            f"{name:8} {count:,} values: " + ", ".join(f"{what} {number}" for what, number in found.items()), flush=True
        )
    return good


def feed_of(model: Model) -> Feed:
    """The inputs beside a model, or planned ones."""
    beside = Path(f"{model.path}.npz")
    if beside.is_file():
        with np.load(beside) as arrays:
            return {name: arrays[name] for name in arrays.files if name in model.cut.inputs}
    quiet = lambda *words: None  # noqa: E731
    plan = planned(FeedSpec(made="auto"), model.file.structure, quiet, quiet, quiet)
    return dict(next(iter(make_feeds(plan, model.inputs, quiet))))


def peak() -> int:
    """Peak memory of this process in MB, since it was started: not what it was forked from had."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) >> 10


def float_run(path: str) -> None:
    """Open and run the float model, and print the peak."""
    model = Model(path, ModelOptions())
    with open_runner(ORT, model.whole()) as runner:
        runner.infer(feed_of(model))
    print(peak())


def measure(path: str, to: str, alone: int, sets: int) -> None:
    """One model; prints a line."""
    model = Model(path, ModelOptions())
    feed = feed_of(model)
    model.cut  # noqa: B018 - both ways need it
    started, worked = time.perf_counter(), time.process_time()
    lens = Lens(model, ORT, Rounding(to=to), [feed])  # type: ignore[arg-type]
    lens.begin(at_once=True)
    effects = dict(lens.several(lens.candidates, lambda one: (one.i, lens.measured([one.i]).worst)))
    board, busy, used = time.perf_counter() - started, time.process_time() - worked, peak()
    chosen = lens.candidates[:: max(1, len(effects) // alone)]
    apart, seconds, work, otherwise = 0.0, 0.0, 0.0, 0
    for one in chosen:
        started, worked = time.perf_counter(), time.process_time()
        proto = mixed_model(lens, [one.i]).proto()
        outputs = _alone(Loadable(data=proto.SerializeToString(), folder=model.file.folder), feed)
        seconds += time.perf_counter() - started
        work += time.process_time() - worked
        away = _distance(lens, outputs, effects[one.i])
        if away > 1e-3:  # what a kernel or an optimisation adds is not the format's
            away = _distance(lens, _plain(model, proto, feed), effects[one.i])
            otherwise += 1
        apart = max(apart, away)
    each, by_work = seconds / len(chosen) * len(effects), work / len(chosen) * len(effects) / busy
    good = sum(_predicted(lens, effects, number) for number in range(sets))
    floats = int(subprocess.run(
        [sys.executable, "-m", "benchmarks.lens", "float", path], capture_output=True, text=True, check=True
    ).stdout)  # fmt: skip
    print(
        f"{Path(path).stem:12} {to:8} {len(effects):4} candidates  switchboard {board:6.1f} s, one model each "
        f"{each:6.1f} s: {each / board:4.1f} times ({by_work:.1f} of processor time); "
        f"apart {apart:.1e} ({otherwise} of {len(chosen)} not optimised); {good} of {sets} sets within 15 %; memory "
        f"{used} MB, float {floats} MB: {used / floats:.2f} times", flush=True,
    )  # fmt: skip
    found = {
        "faster": each / board,
        "work": by_work,
        "apart": apart,
        "good": good,
        "sets": sets,
        "memory": used / floats,
    }
    print(f"{_MARK}{json.dumps(found)}", flush=True)
    lens.close()


def several(paths: list[str], options: tuple[str, ...]) -> bool:
    """Models one after another, each in a process of its own, of which the peak is one; whether all is well."""
    rows = []
    for path in paths:
        line = [sys.executable, "-m", "benchmarks.lens", "models", path, *options]
        for text in subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
            if text.startswith(_MARK):
                rows.append(json.loads(text.removeprefix(_MARK)))
            else:
                print(text, flush=True)
    faster, sets = [row["faster"] for row in rows], sum(row["sets"] for row in rows)
    work = [row["work"] for row in rows]
    good, apart, memory = (
        sum(row["good"] for row in rows),
        *(max(row[key] for row in rows) for key in ("apart", "memory")),
    )
    print(
        f"{len(rows)} models: {statistics.median(faster):.1f} times as fast in the median, {min(faster):.1f} at least "
        f"(5 and 3 are asked for; of processor time {statistics.median(work):.1f} and {min(work):.1f}); apart "
        f"{apart:.1e} at most (1e-3); {good} of {sets} sets within 15 % (90 %); memory "
        f"{memory:.2f} times at most (2.5); load {os.getloadavg()[1]:.1f} of {os.cpu_count()} processors", flush=True,
    )  # fmt: skip
    fast = statistics.median(faster) >= 5 and min(faster) >= 3
    return fast and apart <= 1e-3 and good >= 0.9 * sets and memory <= 2.5


def _distance(lens: Lens, outputs: Any, told: float) -> float:
    """How far the effect of a model that was run alone is from what is told, relative to it or 1e-6 of the output."""
    effect = lens.errors_of([outputs]).worst
    return abs(effect - told) / max(effect, _NOISE / 1e-3)


def _plain(model: Model, proto: onnx.ModelProto, feed: Feed) -> Any:
    """The outputs of a mixed model as its nodes say. Optimised, a Clip before QuantizeLinear is left out where its
    bound lies within 1.2e-7 of what the format holds, however small the values."""
    spec = RunnerSpec(kind="onnxrt", graph_optimization_level="disable")
    with open_runner(spec, Loadable(data=proto.SerializeToString(), folder=model.file.folder)) as runner:
        return runner.infer(feed).outputs


def _alone(model: Loadable, feed: Feed) -> Any:
    """The outputs of a mixed model, without overflow on x86 without VNNI: the switchboard tells what the format does.
    Not optimised where onnxruntime's optimisation breaks it (FP8).
    """
    try:
        with open_runner(RunnerSpec(kind="onnxrt", session_config={SETTING: "1"}), model) as runner:
            return runner.infer(feed).outputs
    except LayerwiseError:
        with open_runner(RunnerSpec(kind="onnxrt", graph_optimization_level="disable"), model) as runner:
            return runner.infer(feed).outputs


class Choice(NamedTuple):
    """runs: that it took; single: that one node at a time takes; cheaper: random sets that cost less and hold; proved:
    whether the mixed model keeps the bound.
    """

    runs: int
    single: int
    cheaper: int
    minimal: bool
    proved: bool


def choose(path: str, to: str, sets: int) -> Choice:
    """One choice; prints a line."""
    model = Model(path, ModelOptions())
    feed = feed_of(model)
    few = to in ("int4", "uint4")  # as the command line has it
    rounding = Rounding(to=to, activations=not few, weight_scales="block" if few else "channel")  # type: ignore[arg-type]
    lens = Lens(model, ORT, rounding, [feed])
    lens.begin()
    order = [one.i for one in lens.candidates]
    bound = lens.measured(order).worst / 2
    with tempfile.TemporaryDirectory() as folder:
        save_feeds(Path(folder, "inputs.json"), [feed])
        compare = CompareSpec(model=path, runners=[ORT], feeds=FeedSpec(files=[f"{folder}/inputs.json"]))
        spec = LensSpec(compare=compare, rounding=rounding, bound=Bound(value=bound))
        done = run_action("debug_lens", spec, "effects")
    result, rows = done.result, {row["i"]: row for row in done.rows}
    kept = frozenset(order.index(node["i"]) for node in result["kept"])

    def holds(tried: frozenset[int]) -> bool:
        return lens.measured([i for k, i in enumerate(order) if k not in tried]).worst <= bound

    costs = [rows[i]["cost"] for i in order]
    cost = sum(costs[k] for k in kept)
    rng, cheaper, tried = np.random.default_rng(0), 0, 0
    worth = np.array([(rows[i]["effect"] or 0.0) ** 2 for i in order])
    while tried < sets and kept:
        size = max(1, len(kept) + int(rng.integers(-2, 3)))
        picked = frozenset(map(int, rng.choice(len(order), min(size, len(order)), False, worth / worth.sum())))
        tried += 1
        cheaper += sum(costs[k] for k in picked) < cost * (1 - 1e-9) and holds(picked)
    single = sum(len(order) - k for k in range(len(kept)))
    print(
        f"{Path(path).stem:12} {to:8} keeps {len(kept)} of {len(order)} ({cost / sum(costs):.1%} of the cost), minimal "
        f"{result['minimal']} ({result['by_prediction']} by prediction), proved {result['proved'] / bound:.3f} of the "
        f"bound; {cheaper} of {tried} random sets are cheaper and hold; {result['runs']} runs, one at a time {single}: "
        f"{result['runs'] / max(1, single):.0%}", flush=True,
    )  # fmt: skip
    lens.close()
    return Choice(result["runs"], single, cheaper, result["minimal"], result["proved"] <= bound)


def _predicted(lens: Lens, effects: dict[int, float], number: int) -> bool:
    rng = np.random.default_rng(number)
    size = min(len(effects), (2, 5, len(effects) // 2)[number % 3])
    low = [int(i) for i in rng.choice(list(effects), size, replace=False)]
    told = float(np.sqrt(sum(effects[i] ** 2 for i in low)))
    return abs(lens.measured(low).worst - told) <= max(0.15 * told, _NOISE)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.lens")
    parser.add_argument("what", choices=("exact", "models", "choice", "float"))
    parser.add_argument("given", nargs="*")
    parser.add_argument("--to", default="int8", choices=tuple(FORMATS))
    parser.add_argument("--alone", type=int, default=10)
    parser.add_argument("--sets", type=int, default=30)
    args = parser.parse_args()
    if args.what == "exact":
        sys.exit(0 if exact(int(args.given[0]) if args.given else 1_000_000) else 1)
    if args.what == "models" and len(args.given) > 1:  # the peak is one of a process
        options = ("--to", args.to, "--alone", str(args.alone), "--sets", str(args.sets))
        sys.exit(0 if several(args.given, options) else 1)
    if args.what == "choice":
        made = [choose(path, args.to, args.sets) for path in args.given]
        runs, single = sum(one.runs for one in made), sum(one.single for one in made)
        print(f"{len(made)} choices: {runs} runs, one at a time {single}: {runs / max(1, single):.1%}")
        return
    for path in args.given:
        float_run(path) if args.what == "float" else measure(path, args.to, args.alone, args.sets)


if __name__ == "__main__":
    main()
