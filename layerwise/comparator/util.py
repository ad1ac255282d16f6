"""Statistics and plots of outputs."""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from layerwise._tool.backends.stats import CHUNK, stats_text
from layerwise._tool.debugtools.compare import plots
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise.datatype import DataType, DataTypeEntry
from layerwise.logger import G_LOGGER
from layerwise.util import array, indent_block, is_empty_shape, sanitize_filename

_SMALL = 100  # elements of an output whose values are shown
_BAR = 40  # characters of a histogram's longest bar
_WIDER = {
    DataType.FLOAT16: DataType.FLOAT32, DataType.UINT32: DataType.INT64,
    **dict.fromkeys((DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16), DataType.INT32),
}  # fmt: skip


def cast_up(buffer: Any) -> Any:
    """FP16 as FP32 and small integers as larger ones, so that differences fit."""
    wider = _WIDER.get(array.dtype(buffer))
    return buffer if wider is None else array.cast(buffer, wider)


def use_higher_precision(func: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: the function gets its arrays as `cast_up` has them; 0 in its place where one has no elements."""

    @functools.wraps(func)
    def computed(*buffers: Any) -> Any:
        if any(is_empty_shape(array.shape(each)) for each in buffers):
            return 0
        return func(*map(cast_up, buffers))

    return computed


@use_higher_precision
def compute_max(buffer: Any) -> Any:
    """The largest element."""
    return array.max(buffer)


@use_higher_precision
def compute_argmax(buffer: Any) -> Any:
    """The place of the largest element."""
    return array.unravel_index(array.argmax(buffer), array.shape(buffer))


@use_higher_precision
def compute_min(buffer: Any) -> Any:
    """The smallest element."""
    return array.min(buffer)


@use_higher_precision
def compute_argmin(buffer: Any) -> Any:
    """The place of the smallest element."""
    return array.unravel_index(array.argmin(buffer), array.shape(buffer))


def compute_mean(buffer: Any) -> Any:
    """The mean, in FP32."""
    return array.mean(buffer, dtype=DataType.FLOAT32)


@use_higher_precision
def compute_std(buffer: Any) -> Any:
    """The standard deviation."""
    return array.std(buffer)


@use_higher_precision
def compute_variance(buffer: Any) -> Any:
    """The variance."""
    return array.var(buffer)


@use_higher_precision
def compute_median(buffer: Any) -> Any:
    """The median."""
    return array.median(buffer)


def compute_quantile(buffer: Any, q: float) -> Any:
    """A quantile; infinite without elements."""
    return array.quantile(buffer, q)


def compute_average_magnitude(buffer: Any) -> Any:
    """The mean of the absolute values, in FP32."""
    return array.mean(array.abs(buffer), dtype=DataType.FLOAT32)


def str_histogram(output: Any, hist_range: tuple[float, float] | None = None) -> str | None:
    """A histogram of ten bins as text; "" for bool and where there can be none, None if all bins are empty."""
    if array.dtype(output) == DataType.BOOL:
        return ""
    try:
        counts, edges = array.histogram(output, range=hist_range)
    except (ValueError, RuntimeError, TypeError) as error:
        G_LOGGER.verbose(f"Could not generate histogram. Note: Error was: {error}")
        return ""
    most = compute_max(counts)
    if not most:
        return None
    texts = [f"{edge:.3g}" for edge in edges]
    left, right = max(map(len, texts)), max(map(len, texts[1:]))
    lines = ["---- Histogram ----", f"{'Bin Range':{left + right + 5}}|  Num Elems | Visualization"]
    for count, low, high in zip(counts, texts, texts[1:], strict=False):
        bar = "#" * int(_BAR * float(count) / float(most))
        lines.append(f"({low:<{left}}, {high:<{right}}) | {count:10} | {bar}")
    return "\n".join(lines) + "\n"


def str_output_stats(output: Any, runner_name: str | None = None) -> str:
    """Mean, deviation, extremes and quantiles of an output in a line."""
    head = f"{runner_name} | Stats: " if runner_name else ""
    try:
        text = _in_one_pass(output) or _of_each_statistic(output)
    except Exception as error:  # text, no elements, a type that has no arithmetic
        G_LOGGER.verbose(f"Could not generate statistics.\nNote: Error was: {error}")
        return f"{head}<Error while computing statistics>"
    return f"{head}{text}\n"


def _of_each_statistic(output: Any) -> str:
    text = (
        f"mean={compute_mean(output):.5g}, std-dev={compute_std(output):.5g}, var={compute_variance(output):.5g}, "
        f"median={compute_median(output):.5g}, min={compute_min(output):.5g} at {compute_argmin(output)}, "
        f"max={compute_max(output):.5g} at {compute_argmax(output)}, "
        f"avg-magnitude={compute_average_magnitude(output):.5g}"
    )
    if array.dtype(output) != DataType.BOOL:
        text += "".join(f", p{round(100 * q)}={compute_quantile(output, q):.5g}" for q in (0.9, 0.95, 0.99))
    return text


def _in_one_pass(output: Any) -> str | None:
    """The same text for a large array of FP32, several times faster; None for others and for NaN and Inf."""
    if not isinstance(output, np.ndarray) or output.dtype != np.float32 or output.size < CHUNK:
        return None
    return stats_text(output) if np.isfinite(output).all() else None


def log_output_stats(
    output: Any, info_hist: bool = False, runner_name: str | None = None, hist_range: tuple[float, float] | None = None
) -> None:
    """Log the statistics; values of small outputs and the histogram at a lower level, unless `info_hist`."""
    G_LOGGER.info(str_output_stats(output, runner_name))
    level = G_LOGGER.INFO if info_hist else G_LOGGER.VERBOSE
    with G_LOGGER.indent():
        if array.size(output) <= _SMALL:
            G_LOGGER.log(lambda: f"---- Values ----\n{indent_block(output)}", level)
        G_LOGGER.log(lambda: str(str_histogram(output, hist_range)), level)


def log_compared_output_stats(
    iter_result0: Any, iter_result1: Any, match_dicts: Sequence[Mapping[str, Any]], runner0_name: str, runner1_name: str
) -> None:
    """Log the statistics of all outputs that were compared, on one scale for both sides."""
    for name, result in match_dicts[0].items() if match_dicts else ():
        other = getattr(result, "output1_name", name) or name
        if name not in iter_result0 or other not in iter_result1:
            continue
        values = iter_result0[name], iter_result1[other]
        if not all(isinstance(kind := array.dtype(each), DataTypeEntry) and kind != DataType.STRING for each in values):
            continue
        failed = any(not bool(found.get(name, True)) for found in match_dicts)
        scale = min(map(compute_min, values)), max(map(compute_max, values))
        log_output_stats(values[0], failed, f"{runner0_name}: {name}", scale)
        log_output_stats(values[1], failed, f"{runner1_name}: {other}", scale)


def build_heatmaps(
    arr: Any, min_val: float, max_val: float, prefix: str, save_dir: str | None = None, show: bool | None = None,
    use_lognorm: bool | None = None,
) -> None:  # fmt: skip
    """Save a heat map of an array, PREFIX.png in the folder, its scale from the smallest to the largest value.

    MissingDependency without matplotlib. There are no windows: `show` is a warning.
    """
    path = _plot(f"{prefix}.png", save_dir, show)
    if path is not None:
        values = array.to_numpy(arr).astype(float)
        sheet = plots.sheet(values, prefix, plots.worst_panels(values))
        plots.save_sheets([sheet], prefix, values.shape, path)


def scatter_plot_error_magnitude(
    absdiff: Any, reldiff: Any, reference_output: Any, min_reldiff: float, max_reldiff: float, runner0_name: str,
    runner1_name: str, out0_name: str, out1_name: str, save_dir: str | None = None, show: bool | None = None,
) -> None:  # fmt: skip
    """Save plots of absolute and relative errors against the magnitude of the reference.

    error_metrics_NAME.png in the folder, and the same with _relative. MissingDependency without matplotlib.
    """
    path = _plot(f"error_metrics_{out0_name}.png", save_dir, show)
    if path is None:
        return
    magnitude = abs(array.to_numpy(reference_output).astype(float))
    title = f"error of {out0_name}\n{runner0_name} against {runner1_name}: {out1_name}"
    plots.scatter(magnitude, array.to_numpy(absdiff).astype(float), f"absolute {title}", path)
    relative = path.with_stem(f"{path.stem}_relative")
    plots.scatter(magnitude, array.to_numpy(reldiff).astype(float), f"relative {title}", relative)


def draw_differences(
    row: LayerRow, runners: tuple[str, str], a: Any, b: Any, heatmaps: str | None, scatter: str | None
) -> None:
    """Save plots of the differences of two outputs into folders."""
    with plots.Plots(CompareSpec(save_heatmaps=heatmaps, save_error_plots=scatter)) as drawn:
        drawn.draw(row, runners, a, b)


def _plot(name: str, folder: str | None, show: bool | None) -> Path | None:
    if show:
        G_LOGGER.warning("plots are saved, not shown: name a folder for them")
    if folder is None:
        return None
    plots.need_matplotlib()
    return Path(folder) / sanitize_filename(name)
