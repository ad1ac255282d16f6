"""The models that are measured, and comparisons of two of them, every tensor."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import onnx
from support.faults import zoo
from support.faults.ours import Done, run_action
from support.faults.zoo.build import Sample
from support.faults.zoo.masked import MASKS, masked

from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec

HALF = "_fp16"
ON, OFF = RunnerSpec(kind="onnxrt", threads=1), RunnerSpec(kind="onnxrt", threads=1, graph_optimization_level="disable")
TWO_THREADS, REFERENCE = RunnerSpec(kind="onnxrt", threads=2), RunnerSpec(kind="reference")
Observe = Literal["auto", "executed", "every", "marked"]


@dataclass(frozen=True)
class Options:
    """models: a folder of further ones. only: names of models; kinds: of what is measured; none is all of them."""

    models: Path | None = None
    only: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    seed: int = 0
    cuda: bool = False
    old: Path | None = None

    def asked(self, kind: str) -> bool:
        """Whether a kind is to be measured."""
        return not self.kinds or kind in self.kinds


@dataclass(frozen=True)
class Files:
    """A model and its inputs."""

    model: Path
    inputs: Path


def samples(options: Options, *, small: bool = True) -> Iterator[tuple[str, Sample]]:
    """Our own networks, those with masks, and the folder's."""
    for name, build in zoo.BUILDERS.items():
        if not options.only or name in options.only:
            yield name, build(small)
    for kind in MASKS:
        if not options.only or kind in options.only:
            yield kind, masked(kind)
    for path in sorted(options.models.glob("*.onnx")) if options.models else ():
        if not options.only or path.stem.removesuffix(HALF) in options.only:
            yield path.stem, zoo.from_file(path)


@contextmanager
def written(sample: Sample) -> Iterator[Files]:
    """A folder with the model and its inputs, for further files too."""
    with tempfile.TemporaryDirectory(prefix="verdicts") as folder:
        files = Files(Path(folder) / "model.onnx", Path(folder) / "inputs.json")
        onnx.save(sample.model, files.model)
        save_feeds(files.inputs, [sample.feed])
        yield files


def compared(files: Files, sides: Sequence[RunnerSpec], observe: Observe = "auto", **more: Any) -> Done:
    """Every tensor of two sides, by the default rule."""
    return run_action(
        "compare", _spec(files, sides, observe=observe, marks=MarkSpec(everything=True), **more), "layers"
    )


def located(files: Files, sides: Sequence[RunnerSpec]) -> list[dict[str, Any]]:
    """The suspects of two sides, the first one first."""
    done = run_action("locate", LocateSpec(compare=_spec(files, sides)), "suspects")
    suspects: list[dict[str, Any]] = done.result["suspects"]
    return suspects


def red(done: Done) -> list[dict[str, Any]]:
    """The rows that failed, in the order of the graph."""
    return sorted((row for row in done.rows if row["passed"] is False), key=lambda row: row["i"])


def _spec(files: Files, sides: Sequence[RunnerSpec], **more: Any) -> CompareSpec:
    model = sides[0].model or str(files.model)
    return CompareSpec(model=model, runners=list(sides), feeds=FeedSpec(files=[str(files.inputs)]), **more)
