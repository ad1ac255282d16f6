"""One layer times 1 + k units in the last place of its type: is it a red row?

Of every network a layer of each size is drawn; half of them are compared with the same runner on both sides, half as
the optimised suspect against the unoptimised original. Layers whose values are too small for 4 units to make another
number of their type are not drawn.
"""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from msgspec.structs import replace as with_fields
from numpy.typing import NDArray
from support.faults import running
from support.faults.scaled import UNIT, layers, scaled

from benchmarks.verdicts.pairs import OFF, ON, Files, Options, compared, red, samples, written

SIZES = (4, 16, 64, 1024)


def main(options: Options) -> bool:
    """Measure and print a row a size; whether 95 % are red at their layer."""
    found: dict[int, list[bool]] = {size: [] for size in SIZES}
    drawn = random.Random(options.seed)
    for number, (name, sample) in enumerate(samples(options)):
        values = running.all_tensors(sample.model, sample.feed)
        kinds = {
            tensor: kind for tensor, kind in layers(sample.model).items() if shows(values[tensor], values[tensor].dtype)
        }
        with written(sample) as files:
            for size in SIZES:
                tensor = drawn.choice(sorted(kinds))
                suspect = files.model.with_name("suspect.onnx")
                onnx.save(scaled(sample.model, tensor, 1 + size * UNIT[kinds[tensor]], kinds[tensor]), suspect)
                hit = _is_red(files, suspect, tensor, optimised=bool((number + size.bit_length()) % 2))
                found[size].append(hit)
                if not hit:
                    print(f"MISSED {name}: {tensor} times 1 + {size} ulp", flush=True)
    print("| one layer multiplied by 1 + k ulp of its type | faults | the layer is red |\n|---|---|---|")
    every = [hit for hits in found.values() for hit in hits]
    for label, hits in [*((f"k = {size}", hits) for size, hits in found.items()), ("all", every)]:
        print(f"| {label} | {len(hits)} | {sum(hits)} |")
    return sum(every) >= 0.95 * len(every)


def _is_red(files: Files, suspect: Path, tensor: str, *, optimised: bool) -> bool:
    sides = [with_fields(ON, model=str(suspect)), with_fields(OFF if optimised else ON, model=str(files.model))]
    return any(row["tensor"] == tensor for row in red(compared(replace(files, model=suspect), sides)))


def shows(values: NDArray[Any], dtype: "np.dtype[Any] | None" = None) -> bool:
    """Whether most of the values that are not 0 are normal numbers of a type, which is their own if none is given."""
    size = np.abs(values[np.isfinite(values) & (values != 0)])
    return bool(size.size) and float(np.median(size)) >= float(np.finfo(dtype or values.dtype).tiny)
