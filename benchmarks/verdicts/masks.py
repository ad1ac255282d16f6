"""40 faults of 0.5 to 10 % in attention scores, before and behind masks of four kinds: which are named first?

The first suspect of `debug locate` and the first red row of `run --mark-all` must be the tensor with the fault; the
clean models, optimised against not and against ONNX's reference evaluator, must have no red row and no suspect.
"""

from dataclasses import replace
from pathlib import Path

import onnx
from support.faults.scaled import element_types, scaled
from support.faults.zoo.masked import LAYERS, MASKS, masked

from benchmarks.verdicts.pairs import OFF, ON, REFERENCE, Files, Options, compared, located, red, written
from layerwise._tool.backends.specs import RunnerSpec

FACTORS = (0.99, 1.01, 0.995, 1.05, 0.9)
PLACES = ("MatMul", "Mul", "Mask")


def main(options: Options) -> bool:
    """Measure and print; whether all are found and no clean model is accused."""
    found, first_red, count, accused = 0, 0, 0, 0
    for kind in MASKS:
        sample = masked(kind)
        with written(sample) as files:
            for sides in ([ON, OFF], [OFF, REFERENCE]):
                done = compared(files, sides)
                accused += bool(red(done) or not done.result["passed"] or located(files, sides))
            types = element_types(sample.model)
            for number in range(10):
                tensor = f"/layer.{number % LAYERS}/{PLACES[number % 3]}_output_0"
                suspect = files.model.with_name("suspect.onnx")
                onnx.save(scaled(sample.model, tensor, FACTORS[number % 5], types[tensor]), suspect)
                count += 1
                run, locate = _first(files, suspect)
                found += locate == tensor
                first_red += run == tensor
                if {run, locate} != {tensor}:
                    print(
                        f"MISSED {kind}: {tensor} times {FACTORS[number % 5]}: run {run}, locate {locate}", flush=True
                    )
        print(f"{kind:14} {found} of {count} located first, {first_red} the first red row so far", flush=True)
    print(f"clean pairs with a red row or a suspect: {accused} of {2 * len(MASKS)}")
    return found == first_red == count and not accused


def _first(files: Files, suspect: Path) -> tuple[str, str]:
    sides = [
        RunnerSpec(kind="onnxrt", threads=1, model=str(suspect)),
        RunnerSpec(kind="onnxrt", threads=1, model=str(files.model)),
    ]
    rows, suspects = red(compared(replace(files, model=suspect), sides)), located(files, sides)
    return rows[0]["tensor"] if rows else "", suspects[0]["tensor"] if suspects else ""
