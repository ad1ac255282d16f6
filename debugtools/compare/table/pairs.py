"""From a pair of arrays to a row of the table: rules, postprocessing, the user's own function, saved results."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.scripts import load_function, script_errors
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Tolerances
from layerwise._tool.debugtools.compare.pairing.counterparts import Uneven
from layerwise._tool.debugtools.compare.result import FAR
from layerwise._tool.debugtools.compare.rows import IN_FULL, LayerRow, Pair
from layerwise._tool.debugtools.compare.spec import CompareSpec, compares_every_layer, rules_of
from layerwise._tool.debugtools.compare.table.condition import KEPT, Conditions
from layerwise._tool.debugtools.compare.table.judging import PairErrors
from layerwise._tool.debugtools.compare.table.layers import layer_row
from layerwise._tool.debugtools.compare.table.places import Places
from layerwise._tool.debugtools.compare.table.settling import Seen

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.observing.on_device import OnDevice
    from layerwise._tool.debugtools.compare.sides.side import Side

Listener = Callable[[LayerRow, Comparison, Array, Array], None]
Failed = Callable[
    [Pair, str, tuple[Array, Array], Comparison, Mapping[str, Array], Callable[..., tuple[Array, ...]]], None
]
Settles = Callable[[Pair, str, tuple[Array, Array], Comparison, int, Callable[..., tuple[Array, ...]]], bool | None]


class ScriptResult(dict[str, Array]):
    """What a user's function gets for an IterationResult: output name -> array, with `runner_name` and `runtime`."""

    def __init__(self, outputs: Mapping[str, Array], runner_name: str, runtime: float | None) -> None:
        super().__init__(outputs)
        self.runner_name = runner_name
        self.runtime = runtime


def split_script(text: str, default: str) -> tuple[Path, str]:
    """Split `file.py:function`; without a function, `default`."""
    path, colon, name = text.rpartition(":")
    if colon and name.isidentifier():
        return Path(path), name
    return Path(text), default


class Postprocess:
    """rules: output name ("" for all others) -> "top-K[,axis=A]" or "K[,A]"; a script takes their place.

    UsageError for a rule that is written otherwise.
    """

    def __init__(self, rules: Mapping[str, str], script: str | None) -> None:
        self._rules = {} if script else {name: _parse(text) for name, text in rules.items()}
        self._path, function = split_script(script, "postprocess_outputs") if script else (Path(), "")
        self._function = load_function(self._path, function) if script else None
        self._what = f"{function}()"

    def __bool__(self) -> bool:
        return bool(self._rules) or self._function is not None

    def array(self, name: str, array: Array, runner: str) -> Array:
        """Return a tensor as it is compared."""
        found: Any = self.outputs({name: array}, runner, None)
        if name not in found:
            raise LayerwiseError(f"{shown(self._what)} dropped output {shown(name, 80)!r}")
        return np.asarray(found[name])

    def outputs(self, outputs: Mapping[str, Array], runner: str, runtime: float | None) -> Mapping[str, Array]:
        """Return all outputs of one run as they are compared."""
        if self._rules:
            outputs = {name: self._top_k(name, array) for name, array in outputs.items()}
        if self._function is None:
            return outputs
        with script_errors(self._path.absolute(), self._what):
            found = self._function(ScriptResult(outputs, runner, runtime))
        if not isinstance(found, Mapping):
            raise UsageError(f"{shown(self._what)} of {shown(str(self._path))} gave {type(found).__name__}, not a dict")
        return {str(name): np.asarray(array) for name, array in found.items()}

    def _top_k(self, name: str, array: Array) -> Array:
        rule = self._rules.get(name, self._rules.get(""))
        return array if rule is None else top_k(array, *rule)


def top_k(array: Array, k: int, axis: int = -1) -> Array:
    """Indices of the `k` largest elements along `axis` (fewer if it is shorter), largest first, ties in order."""
    if array.ndim == 0 or not -array.ndim <= axis < array.ndim:
        raise UsageError(f"top-k: axis {axis} is not in a tensor of shape {array.shape}")
    order = np.argsort(~array if array.dtype.kind in "biu" else -array, axis=axis, kind="stable")
    return np.take(order, np.arange(min(k, array.shape[axis])), axis=axis)


def _parse(text: str) -> tuple[int, int]:
    parts = text.removeprefix("top-").split(",")
    try:
        k, axis = int(parts[0]), int(parts[1].removeprefix("axis=")) if len(parts) > 1 else -1
    except ValueError:
        raise UsageError(
            f"postprocess {shown(text, 60)!r}: write top-K or top-K,AXIS, such as top-5 or top-5,1"
        ) from None
    if k < 1 or len(parts) > 2:
        raise UsageError(f"postprocess {shown(text, 60)!r}: write top-K or top-K,AXIS with K of at least 1")
    return k, axis


_SORTED = 1 << 14
"""Elements up to which quantiles cost little: a report for people has them of any tensor that it tells in full."""


class Comparer:
    """Compares pairs of tensors by a spec's rules. `emit` gets every row with its comparison and arrays.

    device: compares what stayed on the GPU, where anything does. settles: decides of a tensor before rounding does.
    failed: looks into a tensor that fails, or an output that is far off.
    """

    def __init__(
        self,
        spec: CompareSpec,
        sides: "list[Side]",
        places: Places,
        emit: Listener,
        device: "OnDevice | None" = None,
        failed: Failed | None = None,
    ) -> None:
        self.spec, self.sides, self.places = spec, sides, places
        self.tolerances = Tolerances(rules_of(spec.tolerance, layers=places.whole_graph))
        self.postprocess = Postprocess(spec.postprocess, spec.postprocess_script)
        self._script = CompareScript(spec.compare_script) if spec.compare_script else None
        self._emit = emit
        self._errors: dict[Pair, PairErrors] = {}
        self._rows: Counter[Pair] = Counter()
        self.device = device
        kept = KEPT if spec.memory_budget is None else spec.memory_budget // 16
        self._feed: Mapping[str, Array] | None = None
        self._kept = kept // max(1, len(sides) - 1)
        self.settles: Settles | None = None
        self._failed = failed

    def begin(self, earlier: Iterable[LayerRow], feed: Mapping[str, Array]) -> None:
        """Start an iteration of which nothing is known but the rows that an earlier attempt made, and the inputs."""
        self._errors.clear()
        self._rows.clear()
        self._feed = feed
        for row in earlier:
            self._pair_errors(row.pair).recall(row)

    def _pair_errors(self, pair: Pair) -> PairErrors:
        if pair not in self._errors:
            self._errors[pair] = self.pair_errors(pair, self._feed, everything=compares_every_layer(self.spec))
        return self._errors[pair]

    def pair_errors(self, pair: Pair, feed: Mapping[str, Array] | None, *, everything: bool = False) -> PairErrors:
        """What judges the tensors of a pair in one iteration; feed: the graph's inputs, None where nobody knows them.

        everything: as `PairErrors` takes it.
        """
        alike = len({self.sides[i].backend for i in pair}) == 1
        conditions = Conditions(self.places, feed, self._kept)
        shapes = {name: tuple(array.shape) for name, array in (feed or {}).items()}
        return PairErrors(self.places, one_backend=alike, conditions=conditions, everything=everything, inputs=shapes)

    def begin_pair(self, pair: Pair, first: Mapping[str, Array], second: Mapping[str, Array]) -> None:
        """Let the user's function see all outputs of a pair of runs."""
        if self._script:
            self._script.ask(pair, (first, second), (self.sides[pair[0]].name, self.sides[pair[1]].name))

    def compare(self, name: str, a: Array, b: Array, *, in_full: bool = False) -> Comparison:
        """Compare two tensors by the rules of `name`, nothing emitted. in_full: with quantiles, of a small one."""
        spec, rule, place = self.spec, self.tolerances.rule(name), self.places.place(name)
        in_full = in_full and math.prod(a.shape) <= _SORTED
        if self.device is not None and self.device.holds(a, b):
            if not in_full:
                return self.device.compare(a, b, rule, spec.metrics, place.depth, place.types)
            a, b = self.arrays(a, b)
        return compare_arrays(
            a,
            b,
            rule,
            metrics=() if self._script else spec.metrics,
            statistics=spec.statistics or in_full,
            medians=spec.save_accuracy is not None,
            shape_check=spec.shape_check,
            depth=place.depth,
            types=place.types,
        )

    def look(self, coming: Sequence[tuple[Pair, str, Array, Array]]) -> None:
        """See what is to be compared next: what stayed on the GPU is measured there in one go."""
        if self.device is not None:
            self.device.look([(a, b, self.tolerances.rule(name)) for _, name, a, b in coming], self.spec.metrics)

    def arrays(self, *tensors: Array) -> tuple[Array, ...]:
        """The tensors on the host, copied there where they stayed on the GPU."""
        return tensors if self.device is None else tuple(map(self.device.array, tensors))

    def row(
        self, iteration: int, pair: Pair, name: str, mode: str, a: Array, b: Array, *, ready: bool = False,
        observed: tuple[str, Array, Array] | None = None,
    ) -> Comparison:  # fmt: skip
        """Compare two tensors and emit their row. ready: they are postprocessed already. observed: another mode, and
        the tensors in the run that those before them are from.
        """
        first, second = self.sides[pair[0]], self.sides[pair[1]]
        if self.postprocess and not ready:
            a = self.postprocess.array(name, a, first.name)
            b = self.postprocess.array(name, b, second.name)
        self._rows[pair] += 1
        in_full = self.spec.figures and (self.spec.all_figures or self._rows[pair] <= IN_FULL)
        result = self.compare(name, a, b, in_full=in_full)
        if self._script:
            self._script.judge(result, pair, name, (a, b), (first.name, second.name))
        depth = self.places.place(name).depth
        settled = None if self.settles is None else self.settles(pair, name, (a, b), result, depth, self.arrays)
        arrays = (a, b) if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) else None
        by_row = settled is not None or self.postprocess or self._script
        seen = None if observed is None or by_row else self._seen(name, *observed)
        judged = self._pair_errors(pair).judge(name, result, mode, settled=bool(settled), arrays=arrays, seen=seen)
        far = result.passed and (result.rel_l2 or 0.0) > FAR and self.places.is_output(name)
        if self._failed is not None and (result.passed is False or far) and self._feed is not None:
            self._failed(pair, name, (a, b), result, self._feed, self.arrays)
        row = layer_row(iteration, pair, name, second.own(name), mode, self.places.place(name), result, judged)
        self._emit(row, result, a, b)
        return result

    def _seen(self, name: str, mode: str, a: Array, b: Array) -> Seen:
        """A tensor that is not that of its row."""
        arrays = (a, b) if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) else None
        return Seen(self.compare(name, a, b), mode, arrays)

    def enlarged(self, pair: Pair, name: str) -> float:
        """The relative L2 error of a tensor that layers explain which make small differences large; 0 where none do."""
        return self._pair_errors(pair).enlarged(name)

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
