"""`baseline check`: drifts that are planted in models, and clean repetitions.

    python -m benchmarks.baseline drift [--models DIR] [--count N]
    python -m benchmarks.baseline clean [--models DIR] [--runs 100]

drift: a weight moves away evenly over four versions, of which the last is the first whose outputs fail their tolerance;
in three places of each model, with a fixed tolerance and with what rounding explains. DIR holds NAME.onnx,
NAME_fp16.onnx and NAME.onnx.npz; without it two small models are made. clean: the same models again and again, with 1
to 4 threads, inputs moved by one rounding, and the reference evaluator on the kernels of other processors
(OPENBLAS_CORETYPE).
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from msgspec.structs import replace

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import models  # noqa: E402
from support.baselines import accept, check, chosen, drift, pair, products, rules  # noqa: E402

from layerwise._tool.backends.feeds.files import load_feeds  # noqa: E402
from layerwise._tool.backends.feeds.writer import save_feeds  # noqa: E402
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec  # noqa: E402
from layerwise._tool.debugtools.baseline.repeating import varied  # noqa: E402
from layerwise._tool.debugtools.compare.arithmetic.nudge import nudged  # noqa: E402
from layerwise._tool.debugtools.compare.spec import CompareSpec  # noqa: E402
from layerwise._tool.surgery.precision.nodes import convert_precision  # noqa: E402

PLACES = (0.1, 0.5, 0.9)
CORES = ("", "Haswell", "Sandybridge", "Nehalem")


@dataclass(frozen=True)
class Subject:
    """A suspect, its reference, and their inputs."""

    name: str
    suspect: Path
    reference: Path
    inputs: Path


def made(folder: Path) -> Iterator[Subject]:
    """Two small models, each in FP16 against FP32."""
    for name, model, shape in (
        ("mlp", models.mlp(64, 6), (8, 64)),
        ("conv_net", models.conv_net(16, 16), (1, 3, 16, 16)),
    ):
        path = models.save(model, folder / f"{name}.onnx")
        half = folder / f"{name}_fp16.onnx"
        onnx.save(convert_precision(onnx.load(path), "float16"), half)
        inputs = folder / f"{name}.npz"
        first = model.graph.input[0].name
        np.savez(inputs, **{first: np.random.default_rng(0).standard_normal(shape).astype(np.float32)})
        yield Subject(name, half, path, inputs)


def subjects(folder: Path, given: Path | None) -> Iterator[Subject]:
    """The models that are made, and those of a folder."""
    yield from made(folder)
    for half in sorted(given.glob("*_fp16.onnx")) if given else []:
        path = half.with_name(half.name.replace("_fp16", ""))
        yield Subject(path.stem, half, path, path.with_suffix(".onnx.npz"))


def requests(subject: Subject) -> Iterator[tuple[str, float, CompareSpec]]:
    """FP16 against FP32 and FP32 against itself, each with a tolerance."""
    feeds = FeedSpec(files=[str(subject.inputs)])
    for kind, suspect, tolerances in (
        ("fp16", subject.suspect, (None, 2e-2)),
        ("fp32", subject.reference, (None, 1e-3)),
    ):
        for tolerance in tolerances:
            yield kind, tolerance or 0.0, pair(suspect, subject.reference, feeds, tolerance=rules(tolerance))


def drifts(given: Path | None, count: int) -> bool:
    """Print a line for each drift; whether all were caught at least two versions before the outputs fail."""
    early = total = named = 0
    with tempfile.TemporaryDirectory() as place:
        for subject in list(subjects(Path(place), given))[:count]:
            for kind, tolerance, spec in requests(subject):
                for weight in chosen(products(Path(str(spec.model))), PLACES):
                    found = drift(spec, weight, Path(place))
                    label = f"{subject.name:<10} {kind} tolerance {tolerance or 'auto':<6} {found.planted[:30]:<30}"
                    if found.fails is None:
                        print(f"{label} the outputs never fail", flush=True)
                        continue
                    total += 1
                    ahead = found.fails - (found.caught or found.fails)
                    early += ahead >= 2
                    named += found.named == found.planted
                    told = f"outputs fail in version {found.fails}, caught in {found.caught}: {found.named[:30]}"
                    print(f"{label} {told} ({found.cause[:60]})", flush=True)
    print(f"{early} of {total} are caught at least two versions before; the planted layer is named first in {named}")
    return early == total > 0


def clean(given: Path | None, runs: int, count: int) -> bool:
    """Print what clean repetitions raise, on the kernels of each processor; whether that is nothing."""
    with tempfile.TemporaryDirectory() as place:
        raised = [_on(core, Path(place), given, runs // len(CORES), count) for core in CORES]
    return not any(raised)


def _on(core: str, place: Path, given: Path | None, runs: int, count: int) -> int:
    words = ["clean-part", "--runs", str(runs), "--count", str(count), "--place", str(place)]
    words += ["--models", str(given)] if given else []
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    environment |= {"OPENBLAS_CORETYPE": core} if core else {}
    command = [sys.executable, "-m", "benchmarks.baseline", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def clean_part(place: Path, given: Path | None, runs: int, count: int) -> int:
    """The repetitions of one processor; the first call makes the baselines. How many checks fail."""
    raised = done = 0
    for subject in list(subjects(place, given))[:count]:
        for kind, spec in _clean_requests(subject):
            file = place / f"{subject.name}-{kind}.baseline"
            if not file.exists():
                accept(spec, file)
            for number in range(runs):
                moved = place / "moved.safetensors"
                moved.unlink(missing_ok=True)
                feeds = load_feeds(subject.inputs)
                save_feeds(moved, [{name: nudged(array, number) for name, array in feed.items()} for feed in feeds])
                again = replace(varied(spec, number), feeds=FeedSpec(files=[str(moved)]))
                found = check(again, file, repeat=0)
                done += 1
                if not found.result.passed:
                    raised += 1
                    print(f"{subject.name} {kind}: {found.result.conclusion}", flush=True)
    print(f"{os.environ.get('OPENBLAS_CORETYPE', 'as it is'):<12} {done} checks, {raised} raised something", flush=True)
    return min(raised, 100)


def _clean_requests(subject: Subject) -> Iterator[tuple[str, CompareSpec]]:
    feeds = FeedSpec(files=[str(subject.inputs)])
    yield "fp16", pair(subject.suspect, subject.reference, feeds)
    runners = [RunnerSpec(kind="onnxrt"), RunnerSpec(kind="reference")]
    yield "onnx", CompareSpec(model=str(subject.reference), runners=runners, feeds=feeds)


def main() -> None:
    """Measure; exit code 1 if it is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("drift", "clean", "clean-part"))
    parser.add_argument("--models", type=Path)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--place", type=Path)
    options = parser.parse_args()
    if options.what == "clean-part":
        sys.exit(clean_part(options.place, options.models, options.runs, options.count))
    good = drifts(options.models, options.count) if options.what == "drift" else clean(
        options.models, options.runs, options.count
    )  # fmt: skip
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
