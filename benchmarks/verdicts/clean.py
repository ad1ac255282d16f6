"""Pairs in which nothing is wrong, every tensor compared by the default rule: how many rows are red, which pairs fail?

Each network optimised against not (as executed, and every tensor), one thread against two, onnxruntime against ONNX's
reference evaluator, our conversions to FP16 and bfloat16 against FP32 (bfloat16 on the reference evaluator, since
onnxruntime's CPU provider does not run it), and the FP16 export against FP32 where the folder has one. With --cuda:
CUDA without TF32 against the CPU, and optimised against not.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
from support.faults.zoo.build import Sample

from benchmarks.verdicts.low import low_model, overflows
from benchmarks.verdicts.pairs import (
    HALF,
    OFF,
    ON,
    REFERENCE,
    TWO_THREADS,
    Files,
    Observe,
    Options,
    compared,
    red,
    samples,
    written,
)
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.specs import RunnerSpec

Pair = tuple[list[RunnerSpec], Observe]
CUDA = RunnerSpec(kind="onnxrt", providers=["cuda"], tf32=False)
CUDA_OFF = RunnerSpec(kind="onnxrt", providers=["cuda"], tf32=False, graph_optimization_level="disable")
SAME: dict[str, Pair] = {
    "optimised against not, as executed": ([ON, OFF], "executed"),
    "optimised against not, every tensor": ([ON, OFF], "every"),
    "one thread against two": ([ON, TWO_THREADS], "every"),
    "onnxruntime against the reference evaluator": ([OFF, REFERENCE], "every"),
}
ON_CUDA: dict[str, Pair] = {
    "CUDA without TF32 against the CPU, as executed": ([CUDA, ON], "executed"),
    "CUDA without TF32 against the CPU, every tensor": ([CUDA, ON], "every"),
    "CUDA, optimised against not": ([CUDA, CUDA_OFF], "executed"),
}
_LOW = {"converted to FP16": "float16", "converted to bfloat16, on the reference evaluator": "bfloat16"}
_EXPORT = "the FP16 export against FP32"


def main(options: Options) -> bool:
    """Measure and print a row a kind; whether at most 1 % of the rows are red and no pair failed."""
    pairs = SAME | (ON_CUDA if options.cuda else {})
    counts = {kind: [0, 0, 0, 0] for kind in (*pairs, *_LOW, _EXPORT) if options.asked(kind)}
    if not counts:
        raise SystemExit(f"no such kind of pairs: give any of {', '.join(map(repr, (*pairs, *_LOW, _EXPORT)))}")
    for name, sample in samples(options):
        with written(sample) as files:
            for kind, count in counts.items():
                sides, observe = pairs.get(kind) or (_low_sides(kind, name, sample, files, options), "auto")
                if sides:
                    _count(count, kind, name, lambda s=sides, o=observe: compared(files, s, o))
    print("| clean pairs | pairs | rows | red rows | pairs that failed |\n|---|---|---|---|---|")
    for kind, count in counts.items():
        print(f"| {kind} | {' | '.join(map(str, count))} |")
    total = [sum(each) for each in zip(*counts.values(), strict=True)]
    print(f"| all | {' | '.join(map(str, total))} |")
    return total[2] <= total[1] / 100 and not total[3]


def _count(count: list[int], kind: str, name: str, compare: Callable[[], Any]) -> None:
    try:
        done = compare()
    except LayerwiseError as problem:
        print(f"left out: {name}, {kind}: {str(problem)[:160]}", flush=True)
        return
    bad = red(done)
    for i, value in enumerate((1, len(done.rows), len(bad), int(not done.result["passed"]))):
        count[i] += value
    if bad or not done.result["passed"]:
        first = [(row["op"], row["tensor"], row["rel_l2"], row["finding"]) for row in bad[:3]]
        print(
            f"RED {name}, {kind}: {len(bad)} of {len(done.rows)} {first} {done.result['conclusion'][:200]}", flush=True
        )


def _low_sides(kind: str, name: str, sample: Sample, files: Files, options: Options) -> list[RunnerSpec]:
    """The sides of a pair of types: the low one first; none where the network has no such form."""
    if kind == _EXPORT:
        path = (options.models or Path()) / f"{name}{HALF}.onnx"
        return [RunnerSpec(kind="onnxrt", threads=1, model=str(path)), ON] if options.models and path.is_file() else []
    if name.endswith((HALF, "FP16")):
        return []
    if _LOW[kind] == "float16" and (tensor := overflows(sample)):
        print(f"left out: {name}, {kind}: {tensor} overflows", flush=True)
        return []
    low = files.model.with_name(f"{_LOW[kind]}.onnx")
    onnx.save(low_model(sample.model, _LOW[kind]), low)
    runner = "onnxrt" if _LOW[kind] == "float16" else "reference"
    return [RunnerSpec(kind=runner, threads=1 if runner == "onnxrt" else None, model=str(low)), ON]
