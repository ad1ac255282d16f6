"""From a pair of arrays to a row of the table: rules, postprocessing, the user's own function, saved results."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.scripts import load_function, script_errors
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.metrics import Comparison, compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Tolerances
from layerwise._tool.debugtools.compare.pairing.counterparts import Uneven
from layerwise._tool.debugtools.compare.rows import LayerRow, Pair
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.compare.table.layers import Ledger, layer_row
from layerwise._tool.debugtools.compare.table.places import Places
from layerwise._tool.debugtools.compare.table.postprocess import Postprocess, ScriptResult, split_script

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.observing.on_device import OnDevice
    from layerwise._tool.debugtools.compare.sides.side import Side

Array = NDArray[Any]
Listener = Callable[[LayerRow, Comparison, Array, Array], None]


class Comparer:
    """Compares pairs of tensors by a spec's rules. `emit` gets every row with its comparison and arrays.

    device: compares what stayed on the GPU, where anything does.
    """

    def __init__(self, spec: CompareSpec, sides: "list[Side]", places: Places, emit: Listener) -> None:
        self.spec, self.sides, self.places = spec, sides, places
        self.tolerances = Tolerances(spec.tolerance)
        self.postprocess = Postprocess(spec.postprocess, spec.postprocess_script)
        self._script = CompareScript(spec.compare_script) if spec.compare_script else None
        self._emit = emit
        self._ledgers: dict[Pair, Ledger] = {}
        self.device: OnDevice | None = None

    def begin(self, earlier: Iterable[LayerRow]) -> None:
        """Start an iteration: nothing is known but the rows that an earlier attempt made."""
        self._ledgers.clear()
        for row in earlier:
            self._ledgers.setdefault(row.pair, Ledger(self.places)).recall(row)

    def begin_pair(self, pair: Pair, first: Mapping[str, Array], second: Mapping[str, Array]) -> None:
        """Let the user's function see all outputs of a pair of runs."""
        if self._script:
            self._script.ask(pair, (first, second), (self.sides[pair[0]].name, self.sides[pair[1]].name))

    def compare(self, name: str, a: Array, b: Array) -> Comparison:
        """Compare two tensors by the rules of `name`, nothing emitted."""
        spec, rule, depth = self.spec, self.tolerances.rule(name), self.places.place(name).depth
        if self.device is not None and self.device.holds(a, b):
            return self.device.compare(a, b, rule, spec.metrics, depth)
        return compare_arrays(
            a,
            b,
            rule,
            metrics=() if self._script else spec.metrics,
            statistics=spec.statistics,
            medians=spec.save_accuracy is not None,
            shape_check=spec.shape_check,
            depth=depth,
        )

    def arrays(self, *tensors: Array) -> tuple[Array, ...]:
        """The tensors on the host, copied there where they stayed on the GPU."""
        return tensors if self.device is None else tuple(map(self.device.array, tensors))

    def row(
        self, iteration: int, pair: Pair, name: str, mode: str, a: Array, b: Array, *, ready: bool = False
    ) -> Comparison:
        """Compare two tensors and emit their row. ready: they are postprocessed already."""
        first, second = self.sides[pair[0]], self.sides[pair[1]]
        if self.postprocess and not ready:
            a = self.postprocess.array(name, a, first.name)
            b = self.postprocess.array(name, b, second.name)
        result = self.compare(name, a, b)
        if self._script:
            self._script.judge(result, pair, name, (a, b), (first.name, second.name))
        judged = self._ledgers.setdefault(pair, Ledger(self.places)).judge(name, result)
        row = layer_row(iteration, pair, name, second.own(name), mode, self.places.place(name), result, judged)
        self._emit(row, result, a, b)
        return result

    def uneven(self, iteration: int, pair: Pair, found: Uneven, mode: str) -> None:
        """Emit the row of an output that the sides do not give alike: it fails whatever the rules."""
        metrics = ["script"] if self._script else self.spec.metrics
        one, other = found.counts
        result = Comparison((found.kind, found.kind), ((one,), (other,)), self.tolerances.rule(found.name))
        result.verdicts, result.note = dict.fromkeys(metrics, False), found.text
        own, place = self.sides[pair[1]].own(found.name), self.places.place(found.name)
        row = layer_row(iteration, pair, found.name, own, mode, place, result, (None, ""))
        nothing = np.empty(0)
        self._emit(row, result, nothing, nothing)


class CompareScript:
    """A user's `compare_outputs(result0, result1) -> {output name: truth}`."""

    def __init__(self, text: str) -> None:
        self._path, self._name = split_script(text, "compare_outputs")
        self._function = load_function(self._path, self._name)
        self._answers: dict[Pair, Mapping[str, Any]] = {}

    def ask(
        self, pair: Pair, outputs: tuple[Mapping[str, Array], Mapping[str, Array]], runners: tuple[str, str]
    ) -> None:
        """Ask about all outputs of a pair of runs. LayerwiseError with the script's line if it fails."""
        self._answers[pair] = self._call(outputs, runners)

    def judge(
        self, result: Comparison, pair: Pair, name: str, arrays: tuple[Array, Array], runners: tuple[str, str]
    ) -> None:
        """Put the function's verdict on one tensor in place; a tensor that is no output is asked about alone.

        Where it answers nothing there is no verdict.
        """
        answers = self._answers.get(pair, {})
        if name not in answers:
            answers = self._call(({name: arrays[0]}, {name: arrays[1]}), runners)
        if answers:
            passed = bool(answers[name]) if name in answers else all(map(bool, answers.values()))
            result.verdicts = {"script": passed}
        else:
            result.note = f"{self._name}() gave no verdict"

    def _call(
        self, outputs: tuple[Mapping[str, Array], Mapping[str, Array]], runners: tuple[str, str]
    ) -> Mapping[str, Any]:
        results = [ScriptResult(found, runner, None) for found, runner in zip(outputs, runners, strict=True)]
        with script_errors(self._path.absolute(), f"{self._name}()"):
            answers = self._function(*results)
        if not isinstance(answers, Mapping):
            where = f"{shown(self._name)}() of {shown(str(self._path))}"
            raise UsageError(f"{where} gave {type(answers).__name__}, not a dict of verdicts")
        return answers
