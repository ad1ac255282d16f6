"""Options of comparisons: metrics, thresholds, reports."""

from typing import Any

from layerwise._tool.tui.cli.options.common import COMPARE_NAMES
from layerwise._tool.tui.cli.parser import Parser


def add_compare(parser: Parser) -> None:
    group = parser.add_argument_group("Comparison")
    group.add_argument("--validate", action="store_true", help="fail on NaN or Inf in any output")
    group.add_argument("--no-shape-check", action="store_true", help="try to match outputs of different shapes")
    group.add_argument("--fail-fast", action="store_true", help="stop at the first failure")
    group.add_argument(
        "--check-average",
        action="store_true",
        help="hold the average over the iterations against the thresholds",
    )
    group.add_argument("--compare", "--compare-func", nargs="+", action="extend", choices=COMPARE_NAMES)
    group.add_argument("--compare-func-script", metavar="FILE[:FUNCTION]")
    group.add_argument("--save-accuracy-results", metavar="PATH", help="for `layerwise check accuracy`")
    parser.own(
        group,
        "--statistics",
        action="store_true",
        default=None,
        help="exact median and percentiles of every tensor (the default for plain outputs)",
    )
    parser.own(group, "--no-statistics", dest="statistics", action="store_false")
    parser.own(
        group,
        "--tolerance",
        choices=("auto", "fixed"),
        default="fixed",
        help="auto: from the dtype's rounding bound where no value is given",
    )
    add_thresholds(parser)


def add_thresholds(parser: Parser) -> None:
    group = parser.add_argument_group("Thresholds", "For all outputs, or OUTPUT:VALUE for one.")

    def add(*flags: str, help: str, metavar: str = "[OUTPUT:]VALUE", **more: Any) -> None:
        group.add_argument(*flags, nargs="+", action="extend", default=[], metavar=metavar, help=help, **more)

    add("--rtol", "--rel-tol", help="relative, against the second side; 1e-5")
    add("--atol", "--abs-tol", help="absolute; 1e-5")
    add("--check-error-stat", metavar="[OUTPUT:]STAT", help="elemwise, max, mean, median or quantile")
    add("--error-quantile", help="which quantile; 0.99")
    group.add_argument("--infinities-compare-equal", action="store_true")
    add("--index-tolerance", help="for --compare indices; 0")
    add("--l2-threshold", "--l2-tolerance", help="largest L2 norm; 1e-5")
    add("--cosine-similarity-threshold", help="smallest; 0.997")
    add("--psnr-threshold", "--psnr-tolerance", help="smallest, in dB; 30")
    add("--snr-threshold", "--snr-tolerance", help="smallest, in dB; 20")
    add("--lpips-threshold", "--lpips-tolerance", help="largest; 0.1")
    group.add_argument("--save-heatmaps", metavar="DIR")
    group.add_argument("--show-heatmaps", action="store_true")
    group.add_argument("--save-error-metrics-plot", metavar="DIR")
    group.add_argument("--show-error-metrics-plot", action="store_true")
