"""Options of comparisons: metrics, thresholds, reports."""

from argparse import Namespace
from collections.abc import Callable
from typing import Any, cast, get_args

from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, MetricName, Stat
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.options.common import MARKING, compared
from layerwise._tool.tui.cli.options.option import WRITTEN, Group, InForm, Joint, Option, flag, many

TRUTH = Group(
    "Truth",
    flag("--truth", own=True, field="truth", form=InForm("truth in FP64"),
         help="hold every layer of both sides against the reference's graph in FP64; all tensors if none are marked"),
    plain=compared,
)  # fmt: skip
_ALIASES: dict[str, list[MetricName]] = {
    "distance_metrics": ["l2", "cosine_similarity"],
    "quality_metrics": ["psnr", "snr"],
}
COMPARE_NAMES = (
    *("simple", "indices", "l2", "cosine_similarity", "distance_metrics", "psnr", "snr", "quality_metrics"),
    "perceptual_metrics",
)


def metric_names(names: list[str] | None) -> list[MetricName]:
    """Metrics as `--compare` names them, groups spelt out; `simple` where none is named."""
    chosen: dict[MetricName, None] = {}
    for name in names or ["simple"]:
        chosen.update(dict.fromkeys(_ALIASES.get(name) or [cast(MetricName, name)]))
    return list(chosen)


def _marked(marks: MarkSpec) -> bool:
    return bool(marks.everything or marks.names or marks.op_types)


def _statistics(args: Namespace) -> bool:
    if args.statistics is not None:
        return bool(args.statistics)
    joint = next(item for item in MARKING.items if item.field == "marks")
    return not _marked(joint.read(args))


def _statistics_words(spec: CompareSpec) -> list[str]:
    if spec.statistics is not _marked(spec.marks):
        return []
    return ["--statistics"] if spec.statistics else ["--no-statistics"]


COMPARE = Group(
    "Comparison",
    flag("--validate", field="validate", script=WRITTEN, form=InForm("stop at NaN, Inf"),
         help="fail on NaN or Inf in any output"),
    flag("--no-shape-check", field="shape_check", parse=lambda off: not off, script=WRITTEN,
         help="try to match outputs of different shapes"),
    flag("--fail-fast", field="fail_fast", script=WRITTEN, form=InForm("stop at first failure"),
         help="stop at the first failure"),
    flag("--check-average", field="check_average", script="Comparator.compare_accuracy.check_average",
         help="hold the average over the iterations against the thresholds"),
    many("--compare", "--compare-func", field="metrics", parse=metric_names, choices=COMPARE_NAMES, default=None,
         script=WRITTEN, form=InForm("metrics", hint="simple l2 cosine_similarity psnr snr")),
    Option("--compare-func-script", field="compare_script", metavar="FILE[:FUNCTION]", script=WRITTEN),
    Option("--save-accuracy-results", field="save_accuracy", metavar="PATH", script=WRITTEN,
           help="for `layerwise check accuracy`"),
    Joint(
        "statistics",
        flag("--statistics", own=True, default=None,
             help="exact median and percentiles of every tensor (the default for plain outputs)"),
        Option("--no-statistics", own=True, dest="statistics", action="store_false"),
        read=_statistics, write=_statistics_words,
    ),
    Option("--tolerance", own=True, field="tolerance.auto", choices=("auto", "fixed"),
           parse=lambda word: word == "auto", show=lambda auto: "auto" if auto else "fixed",
           help="auto: what rounding explains decides (where layers are compared and no tolerance is given, it does); "
                "fixed: --atol and --rtol do"),
    plain=compared,
)  # fmt: skip


def _stat(text: str) -> Stat:
    if text not in get_args(Stat):
        raise ValueError(text)
    return text  # type: ignore[return-value]


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(text)
    return value


def _rules(
    *flags: str, field: str, script: str, of: Callable[[str], Any] = values.bound, what: str = "a threshold",
    text: Callable[[Any], str] = repr, metavar: str = "[OUTPUT:]VALUE", **settings: Any,
) -> Option:  # fmt: skip
    """An option with values for all outputs or for single ones. of: from text to one; what: for the error's text."""
    return many(
        *flags, field=f"tolerance.{field}", script=script, metavar=metavar,
        parse=lambda items: values.parse_map(items, of, what), show=lambda rules: values.format_map(rules, text),
        **settings,
    )  # fmt: skip


def _typed(label: str) -> InForm:
    return InForm(label, hint="1e-5 or output:1e-3", when="tolerance=fixed")


THRESHOLDS = Group(
    "Thresholds",
    _rules("--rtol", "--rel-tol", field="rtol", what="a tolerance", script="SimpleCompareFunc.rtol",
           form=_typed("relative"), help="relative, against the second side; 1e-5"),
    _rules("--atol", "--abs-tol", field="atol", what="a tolerance", script="SimpleCompareFunc.atol",
           form=_typed("absolute"), help="absolute; 1e-5"),
    _rules("--check-error-stat", field="stat", of=_stat, text=str, metavar="[OUTPUT:]STAT",
           what="a statistic (elemwise, max, mean, median, quantile)", script="SimpleCompareFunc.check_error_stat",
           form=InForm("statistic", choices=get_args(Stat)), help="elemwise, max, mean, median or quantile"),
    _rules("--error-quantile", field="quantile", of=_fraction, what="a quantile between 0 and 1",
           script="SimpleCompareFunc.error_quantile", help="which quantile; 0.99"),
    flag("--infinities-compare-equal", field="tolerance.infinities_compare_equal",
         script="SimpleCompareFunc.infinities_compare_equal"),
    _rules("--index-tolerance", field="index_tolerance", of=int, what="a whole number",
           script="IndicesCompareFunc.index_tolerance", help="for --compare indices; 0"),
    _rules("--l2-threshold", "--l2-tolerance", field="l2", script="L2CompareFunc.l2_threshold",
           help="largest L2 norm; 1e-5"),
    _rules("--cosine-similarity-threshold", field="cosine", help="smallest; 0.997",
           script="CosineSimilarityCompareFunc.cosine_similarity_threshold"),
    _rules("--psnr-threshold", "--psnr-tolerance", field="psnr", script="PsnrCompareFunc.psnr_threshold",
           help="smallest, in dB; 30"),
    _rules("--snr-threshold", "--snr-tolerance", field="snr", script="SnrCompareFunc.snr_threshold",
           help="smallest, in dB; 20"),
    _rules("--lpips-threshold", "--lpips-tolerance", field="lpips", help="largest; 0.1",
           script="PerceptualMetricsCompareFunc.lpips_threshold"),
    Option("--save-heatmaps", field="save_heatmaps", metavar="DIR"),
    flag("--show-heatmaps"),
    Option("--save-error-metrics-plot", field="save_error_plots", metavar="DIR"),
    flag("--show-error-metrics-plot"),
    description="For all outputs, or OUTPUT:VALUE for one.",
    plain=compared,
)  # fmt: skip
