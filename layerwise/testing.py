"""Comparisons layer by layer in tests: `assert_layers_close` fails with the first wrong layer and those around it.

Each comparison is a job in a process of its own: native code that crashes fails the test and does not end the run. A
job can be looked at afterwards (`layerwise jobs show N`, or the app).
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.backends.specs import FeedSpec, RunnerKind, RunnerSpec
from layerwise._tool.debugtools.baseline.report import check_text
from layerwise._tool.debugtools.baseline.rows import BaselineResult, ChangeRow
from layerwise._tool.debugtools.baseline.spec import BaselineSpec
from layerwise._tool.debugtools.compare.result import CompareResult
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec
from layerwise._tool.debugtools.compare.table.excerpt import first_wrong, rows_around

if TYPE_CHECKING:
    import onnx

    from layerwise._tool.backends.jobs.journal.schema import Event
    from layerwise._tool.backends.jobs.journal.view import JobView

__all__ = ["Checked", "Compared", "assert_layers_close", "assert_not_grown", "compare_layers"]

Model: TypeAlias = "str | os.PathLike[str] | onnx.ModelProto"
Feeds: TypeAlias = "Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | os.PathLike[str] | FeedSpec | None"
Tolerance: TypeAlias = float | tuple[float, float] | Mapping[str, float] | ToleranceSpec | None
Layers: TypeAlias = Sequence[str] | bool
Runner: TypeAlias = RunnerKind | RunnerSpec


class Compared(msgspec.Struct, frozen=True):
    """What a comparison found. rows: every tensor that was compared, as in table `layers` of its job."""

    passed: bool
    rows: list[LayerRow]
    result: CompareResult
    job: int

    @property
    def first_wrong(self) -> LayerRow | None:
        """The first wrong layer, None where all are right."""
        return first_wrong(self.rows, self.result)

    def text(self, around: int = 3) -> str:
        """What was found: a sentence, the first wrong layer with as many rows before and behind it, and the job."""
        lines = [self.result.conclusion, *rows_around(self.rows, self.result, around)]
        return "\n".join([*lines, f"the whole table: layerwise jobs show {self.job}"])


class Checked(msgspec.Struct, frozen=True):
    """What a check of a baseline found. changes: the layers that are not as they were."""

    passed: bool
    changes: list[ChangeRow]
    result: BaselineResult
    job: int


def compare_layers(
    suspect: Model,
    reference: "Model | Mapping[str, Any] | None" = None,
    feeds: Feeds = None,
    *,
    tolerance: Tolerance = None,
    layers: Layers = True,
    runner: Runner = "onnxrt",
    reference_runner: Runner | None = None,
) -> Compared:
    """Compare two sides layer by layer.

    suspect: a model. reference: a model, saved outputs (a file, or a dict of arrays); None: the suspect's model by
    ONNX's reference evaluator. feeds: name -> array, several of these (iterations), or a file of saved inputs; None:
    made up, as the graph wants them. tolerance: a number (absolute and relative), (atol, rtol), or tensor -> number;
    None: what rounding explains. layers: names or globs; True all, False the outputs alone. runner: of the suspect, and
    of a reference that is a model unless `reference_runner` is given.

    LayerwiseError if the comparison does not run.
    """
    with ExitStack() as stack:
        spec = _request(stack, suspect, reference, feeds, tolerance, layers, runner, reference_runner)
        rows: list[object] = []
        view = _job("compare", spec, "layers", rows)
    result = msgspec.convert(view.result, CompareResult)
    return Compared(result.passed, typed(rows, LayerRow), result, view.id)


def assert_layers_close(
    suspect: Model,
    reference: "Model | Mapping[str, Any] | None" = None,
    feeds: Feeds = None,
    *,
    tolerance: Tolerance = None,
    layers: Layers = True,
    runner: Runner = "onnxrt",
    reference_runner: Runner | None = None,
) -> Compared:
    """Raise AssertionError, with the first wrong layer and the rows around it, unless all layers are close.

    Arguments as `compare_layers` takes them; returns what was compared.
    """
    __tracebackhide__ = True
    found = compare_layers(
        suspect, reference, feeds, tolerance=tolerance, layers=layers, runner=runner, reference_runner=reference_runner
    )
    if not found.passed:
        raise AssertionError(found.text())
    return found


def assert_not_grown(
    baseline: str | os.PathLike[str],
    suspect: Model,
    reference: "Model | Mapping[str, Any] | None" = None,
    feeds: Feeds = None,
    *,
    tolerance: Tolerance = None,
    layers: Layers = True,
    runner: Runner = "onnxrt",
    reference_runner: Runner | None = None,
    accept: bool = False,
) -> Checked:
    """Raise AssertionError where the error of a layer has grown beyond its rounding since a baseline was made.

    baseline: the file. accept: write the errors of now to it, grown or not. Others as `compare_layers` takes them.
    """
    __tracebackhide__ = True
    path = Path(baseline).absolute()
    if not accept and not path.exists():
        raise AssertionError(f"there is no baseline {path}: run pytest with --layerwise-accept once, and keep the file")
    with ExitStack() as stack:
        compare = _request(stack, suspect, reference, feeds, tolerance, layers, runner, reference_runner)
        file, output = ("", str(path)) if accept else (str(path), None)
        rows: list[object] = []
        view = _job("baseline", BaselineSpec(compare=compare, file=file, output=output, paths=False), "baseline", rows)
    result, changes = msgspec.convert(view.result, BaselineResult), typed(rows, ChangeRow)
    if not result.passed:
        raise AssertionError(check_text(result, changes, view.id))
    return Checked(result.passed, changes, result, view.id)


def _request(
    stack: ExitStack,
    suspect: Model,
    reference: "Model | Mapping[str, Any] | None",
    feeds: Feeds,
    tolerance: Tolerance,
    layers: Layers,
    runner: Runner,
    reference_runner: Runner | None,
) -> CompareSpec:
    """The comparison; what is not in a file is put into one for as long as the stack is open."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="layerwise-")))
    first = _runner(runner)
    if reference is None:
        second = _runner(reference_runner or "reference")
    elif isinstance(reference, Mapping) or _is_saved(reference):
        results = _arrays(reference, folder / "golden.npz") if isinstance(reference, Mapping) else str(reference)
        second = RunnerSpec(kind="saved", results=str(Path(results).absolute()))
    else:
        second = msgspec.structs.replace(
            _runner(reference_runner or runner), model=_model(reference, folder / "reference.onnx")
        )
    return CompareSpec(
        model=_model(suspect, folder / "suspect.onnx"), runners=[first, second], feeds=_feeds(feeds, folder),
        tolerance=_tolerance(tolerance), marks=_marks(layers),
    )  # fmt: skip


def _runner(runner: Runner) -> RunnerSpec:
    if isinstance(runner, RunnerSpec):
        return runner
    try:
        return msgspec.convert({"kind": runner}, RunnerSpec)
    except msgspec.ValidationError as error:
        raise UsageError(f"{runner!r} is no runner: {error}") from None


def _is_saved(reference: Any) -> bool:
    return isinstance(reference, str | os.PathLike) and Path(reference).suffix in (".json", ".npz", ".safetensors")


def _model(model: Any, target: Path) -> str:
    if isinstance(model, str | os.PathLike):
        return str(Path(model).absolute())
    if not hasattr(model, "SerializeToString"):
        raise UsageError(f"a model is a path or an onnx.ModelProto, not {type(model).__name__}")
    import onnx

    onnx.save(model, target)
    return str(target)


def _feeds(feeds: Feeds, folder: Path) -> FeedSpec:
    if feeds is None:
        return FeedSpec(made="auto")
    if isinstance(feeds, FeedSpec):
        return feeds
    if isinstance(feeds, str | os.PathLike):
        return FeedSpec(files=[str(Path(feeds).absolute())])
    from layerwise._tool.backends.feeds.writer import save_feeds

    path = folder / "feeds.safetensors"
    save_feeds(path, [feeds] if isinstance(feeds, Mapping) else feeds)
    return FeedSpec(files=[str(path)])


def _arrays(values: Mapping[str, Any], path: Path) -> str:
    import numpy as np

    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in values.items()}
    np.savez(path, **arrays)
    return str(path)


def _tolerance(given: Tolerance) -> ToleranceSpec:
    if given is None:
        return ToleranceSpec(auto=True)
    if isinstance(given, ToleranceSpec):
        return given
    if isinstance(given, Mapping):
        return ToleranceSpec(atol=dict(given), rtol=dict(given), auto=True)
    atol, rtol = given if isinstance(given, tuple) else (given, given)
    return ToleranceSpec(atol={"": float(atol)}, rtol={"": float(rtol)})


def _marks(layers: Layers) -> MarkSpec:
    if isinstance(layers, bool):
        return MarkSpec(everything=layers)
    return MarkSpec(names=[layers] if isinstance(layers, str) else list(layers))


def _job(action: str, spec: msgspec.Struct, table: str, rows: list[object]) -> "JobView":
    """Run a job to its end and collect the rows of a table. LayerwiseError if it fails; ctrl+c ends the run."""
    from layerwise._tool.backends.jobs.inline import run_inline
    from layerwise._tool.backends.jobs.spec import JobSpec
    from layerwise._tool.backends.jobs.workspace.store import Workspace
    from layerwise._tool.debugtools import ACTIONS

    def listen(event: "Event") -> None:
        if event["type"] == "row" and event["table"] == table:
            rows.append(event["row"])

    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    words = ["pytest", *([test] if test else [])]
    job = JobSpec(
        action=action, params=msgspec.to_builtins(spec), title=" ".join(words), command=words, cwd=str(Path.cwd())
    )
    view = run_inline(job, listen, Workspace(), ACTIONS)
    if view.state == "cancelled":
        raise KeyboardInterrupt
    if view.state != "done":
        summary = str((view.card or {}).get("summary") or view.state)
        raise LayerwiseError(f"{summary} (job {view.id}: layerwise jobs show {view.id})")
    return view
