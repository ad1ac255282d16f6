"""One comparison for a baseline: its rows, the digests of its models and of its inputs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import UNSET, Struct
from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.feeds.files import load_feeds
from layerwise._tool.backends.older_python import file_digest
from layerwise._tool.backends.results.inference import Stored
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.debugtools.baseline.facts import Fact, Facts
from layerwise._tool.debugtools.baseline.machine import machine
from layerwise._tool.debugtools.baseline.measure import Measured, layers_of
from layerwise._tool.debugtools.baseline.rows import Baseline
from layerwise._tool.debugtools.compare.action import compared
from layerwise._tool.debugtools.compare.result import CompareResult
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.sides.feeds import digest
from layerwise._tool.debugtools.compare.sides.models import Model, make_model
from layerwise._tool.debugtools.compare.spec import CompareSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

INPUTS = "baseline-inputs.safetensors"


class Recorder:
    """A job's context that keeps the rows of layers. quiet: of a repetition, whose rows and messages nobody reads."""

    def __init__(self, context: "JobContext", *, quiet: bool = False) -> None:
        self._context, self._quiet = context, quiet
        self.layers: list[LayerRow] = []

    def row(self, table: str, row: object) -> None:
        if isinstance(row, LayerRow):
            self.layers.append(row)
        if not self._quiet:
            self._context.row(table, row)

    def previous_rows(self, table: str) -> list[dict[str, Any]]:
        return []

    def log(self, text: str, level: str = "info") -> None:
        if not self._quiet:
            self._context.log(text, level)

    def warn(self, text: str) -> None:
        if not self._quiet:
            self._context.warn(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


class Taken(Struct, frozen=True):
    """A comparison that was run for a baseline. inputs: where they were saved, None where there were none."""

    baseline: Baseline
    layers: list[Measured]
    result: CompareResult
    inputs: Path | None


def take(context: "JobContext", spec: CompareSpec, request: dict[str, Any]) -> Taken:
    """Run a comparison and measure its layers. request: as a baseline's file keeps it. LayerwiseError as `compare`."""
    recorder = Recorder(context)
    context.artifacts.mkdir(parents=True, exist_ok=True)
    saved = context.artifacts / INPUTS
    result = compared(cast("JobContext", recorder), replace(spec, save_inputs=str(saved)))
    inputs = saved if saved.exists() else None
    facts, reference, models = _facts(spec, recorder.layers)
    layers = layers_of(recorder.layers, facts, reference, alike=_alike(spec))
    feeds = [digest(feed).hex()[:16] for feed in read_inputs(inputs)] if inputs else []
    made = Baseline(machine(spec.runners), request, models, feeds, [each.layer for each in layers])
    return Taken(made, layers, result, inputs)


def read_inputs(path: Path) -> list[dict[str, Array]]:
    """The inputs of each iteration."""
    return [
        {name: value.array() if isinstance(value, Stored) else value for name, value in feed.items()}
        for feed in load_feeds(path)
    ]


def repeat_rows(context: "JobContext", spec: CompareSpec, inputs: Path | None) -> list[LayerRow]:
    """The rows of another run of a comparison. inputs: in place of its own."""
    recorder = Recorder(context, quiet=True)
    feeds = spec.feeds if inputs is None else FeedSpec(files=[str(inputs)])
    compared(cast("JobContext", recorder), replace(spec, feeds=feeds))
    return recorder.layers


def _alike(spec: CompareSpec) -> bool:
    """Whether the sides run in the same way, on the CPU, where a session gives the same bits each time."""
    plain = [replace(runner, name="", model=None) for runner in spec.runners]
    on_cpu = all(name.lower().startswith("cpu") for runner in plain for name in runner.providers)
    return plain[0].kind in ("onnxrt", "reference") and on_cpu and all(runner == plain[0] for runner in plain)


def _facts(spec: CompareSpec, rows: list[LayerRow]) -> tuple[Mapping[str, Fact], Mapping[str, Fact], list[str]]:
    """What the graphs say of the tensors of rows: the comparison's, and the reference's where it runs another model;
    and digests of the sides' models.
    """
    paths = [None if runner.kind == "saved" else runner.model or spec.model for runner in spec.runners]
    common = spec.model or next((path for path in paths if path), None)
    names = {row.tensor: row.tensor if row.tensor2 is UNSET else row.tensor2 for row in rows}
    mine = _of_model(common, spec, set(names))
    found = {name: mine.of(name) for name in names} if mine else {}
    other = paths[1] if len(paths) > 1 else None
    theirs = _of_model(other, spec, set(names.values())) if other and other != common else None
    reference = {name: theirs.of(own) for name, own in names.items()} if theirs else {}
    known = {common: mine, other: theirs} if theirs else {common: mine}
    return found, reference, [_digest(path, known.get(path)) for path in paths]


def _of_model(path: str | None, spec: CompareSpec, names: set[str]) -> Facts | None:
    if path is None or not Path(path).is_file():
        return None
    model = make_model(path, spec.model_options)
    return Facts(model.file, names) if isinstance(model, Model) and model.has_graph else None


def _digest(path: str | None, facts: Facts | None) -> str:
    """A digest of a side's model: of its graph, or of the file."""
    if facts is not None:
        return facts.whole()
    if path is None:
        return ""
    file = Path(path.rpartition(":")[0] if ".py:" in path else path)
    if not file.is_file():
        return ""
    with file.open("rb") as stream:
        return file_digest(stream).hexdigest()[:16]
