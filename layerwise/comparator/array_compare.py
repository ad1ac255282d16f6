"""What functions that compare arrays share: the loop over outputs, the report, exact arithmetic."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from layerwise._tool.backends.runner import element_of
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Tolerances
from layerwise._tool.debugtools.compare.figures import figures
from layerwise._tool.debugtools.compare.pairing.counterparts import counterparts
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import MetricName, ToleranceSpec
from layerwise._tool.debugtools.compare.table import report_lines
from layerwise._tool.debugtools.compare.table.layers import layer_row
from layerwise._tool.debugtools.compare.table.places import Place
from layerwise.comparator.matching import (
    BaseCompareFunc,
    FindOutput,
    default_find_output_func,
    need_some,
    tell_skipped,
    tell_summary,
)
from layerwise.comparator.struct import IterationResult
from layerwise.logger import G_LOGGER
from layerwise.util import array

PerOutput = Any  # a value for all outputs, or output name -> value ("" for all others)


class ArrayCompareFunc(BaseCompareFunc):
    """Compares output by output with one metric. Without `find_output_func` outputs of different names are paired as
    `default_find_output_func` does, with a warning; elements of sequences by their exact names alone.
    """

    metric: MetricName
    check_shapes = True
    fail_fast = False
    find_output_func: FindOutput | None = None

    def _set(self, check_shapes: bool | None, fail_fast: bool | None, find_output_func: FindOutput | None) -> None:
        self.check_shapes = check_shapes is not False
        self.fail_fast = bool(fail_fast)
        self.find_output_func = find_output_func

    def _rules(self) -> ToleranceSpec:
        raise NotImplementedError

    def __call__(self, iter_result0: IterationResult, iter_result1: IterationResult) -> dict[str, Any]:
        found: dict[str, Any] = {}
        used: dict[str, str] = {}
        rules = self._rules()
        for index, name in enumerate(iter_result0):
            for other in self._others(name, index, iter_result0, iter_result1):
                if other not in iter_result1:
                    tell_skipped(name, other, iter_result0, iter_result1)
                    continue
                used[other] = name
                found[name] = self._compare(rules, (name, other), iter_result0, iter_result1)
                if self.fail_fast and not found[name]:
                    return found
        if self.find_output_func is None:
            found |= self._unpaired(iter_result0, iter_result1, used)
        need_some(found, iter_result0, iter_result1)
        tell_summary(found, report_lines.label(self.metric))
        return found

    def _unpaired(
        self, iter_result0: IterationResult, iter_result1: IterationResult, used: Mapping[str, str]
    ) -> dict[str, Any]:
        """Sequences of different lengths, which fail; outputs of the second side alone are named. used: output of the
        second side -> that of the first it was compared with.
        """
        pairs = counterparts(list(iter_result0), [used.get(name, name) for name in iter_result1], ((), ()))
        if alone := [shown(name, 200) for name in pairs.alone[1]]:
            G_LOGGER.warning(f"not compared: {alone} [{iter_result1.runner_name}]: not in [{iter_result0.runner_name}]")
        for each in pairs.uneven:
            G_LOGGER.error(f"FAILED | Output: `{shown(each.name, 200)}` | {each.text}")
        return {each.name: False for each in pairs.uneven}

    def _others(self, name: str, index: int, first: IterationResult, second: IterationResult) -> Sequence[str]:
        if self.find_output_func is not None:
            return self.find_output_func(name, index, second) or []
        return [name] if element_of(name) else default_find_output_func(name, index, second, first) or [name]

    def _compare(
        self, rules: ToleranceSpec, names: tuple[str, str], first: IterationResult, second: IterationResult
    ) -> Any:
        a, b = array.to_numpy(first[names[0]]), array.to_numpy(second[names[1]])
        result = compare_arrays(
            a, b, Tolerances(rules).rule(names[0]),
            metrics=[self.metric], statistics=True, medians=True, shape_check=self.check_shapes,
        )  # fmt: skip
        row = layer_row(0, (0, 1), *names, "plain", Place(), result, (None, ""))
        if G_LOGGER.shows(G_LOGGER.INFO if result.passed is False else G_LOGGER.VERBOSE, "comparator"):
            row = replace(row, figures=figures(a, b, self.check_shapes))
        for line in report_lines.metric_lines(row, self.metric, rules):
            with G_LOGGER.indent(line.depth - 1):
                G_LOGGER.say(line.level, line.text)
        self._draw(row, (first.runner_name, second.runner_name), a, b)
        found = self._found(result, self._threshold(names[0]))
        if not isinstance(found, bool):
            found.output0_name, found.output1_name = names
        return found

    def _threshold(self, output_name: str) -> Any:
        return self.thresholds_for(output_name)

    def _draw(self, row: LayerRow, runners: tuple[str, str], a: Any, b: Any) -> None:
        """Plots, for functions that are asked for them."""

    def _found(self, result: Comparison, threshold: Any) -> Any:
        raise NotImplementedError


def rules_of(given: PerOutput) -> dict[str, Any]:
    """Output name -> value, of either spelling."""
    if given is None:
        return {}
    return dict(given) if isinstance(given, Mapping) else {"": given}
