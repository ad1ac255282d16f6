"""Groups of options about inference and comparison, for extension modules and tools to rest on."""

from typing import Any, ClassVar

import msgspec

from layerwise._tool.debugtools.compare.spec import MetricName
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.extensions.of_run import OfRun, Told
from layerwise._tool.tui.cli.extensions.script import Script, Text
from layerwise._tool.tui.cli.options.compare import COMPARE, THRESHOLDS
from layerwise._tool.tui.cli.options.run import INFERENCE
from layerwise._tool.tui.cli.script.generate import ScriptText, top_k


class ComparatorRunArgs(OfRun):
    """Comparator Inference: how models are run, and what is saved of it."""

    declared = (INFERENCE,)
    left_out = ("--load-outputs", "--postprocess", "--postprocess-func-script", "--sequential-runners")
    warm_up = Told("warm_up")
    save_inputs_path = Told("save_inputs")
    save_outputs_path = Told("save_outputs")
    save_input_blob_path = Told("save_input_blob")

    def parse_impl(self, args: Any) -> None:
        super().parse_impl(args)
        self.use_subprocess = self.args.use_subprocess or None


class ComparatorPostprocessArgs(OfRun):
    """Comparator Postprocessing: what is done with outputs before they are compared."""

    @property
    def postprocess(self) -> dict[str, Any] | None:
        """Output -> K, or (K, axis)."""
        return {name: top_k(text) for name, text in self.spec.postprocess.items()} or None

    @property
    def postprocess_func_script(self) -> str | None:
        return _part(self.spec.postprocess_script, "postprocess_outputs", 0)

    @property
    def postprocess_func_name(self) -> str | None:
        return _part(self.spec.postprocess_script, "postprocess_outputs", 1)


class ComparatorCompareArgs(OfRun):
    """Comparator Comparisons: how outputs are compared."""

    declared = (COMPARE,)
    validate = Told("validate")
    save_accuracy_results_path = Told("save_accuracy")
    fail_fast = Told("fail_fast")
    check_average = Told("check_average")

    def parse_impl(self, args: Any) -> None:
        super().parse_impl(args)
        self.no_shape_check = self.args.no_shape_check or None
        self.load_outputs_paths = list(self.args.load_outputs)
        self.compare_funcs = list(self.args.compare or ["simple"])
        self.streaming = not self.args.sequential_runners

    @property
    def compare_func_script(self) -> str | None:
        return _part(self.spec.compare_script, "compare_outputs", 0)

    @property
    def compare_func_name(self) -> str | None:
        return _part(self.spec.compare_script, "compare_outputs", 1)


class _CompareFunc(OfRun):
    """A group of the thresholds of one metric."""

    declared = (THRESHOLDS,)
    metric: ClassVar[MetricName] = "simple"

    def add_to_script_impl(self, script: Script) -> Text:
        """Add the comparison function; its name."""

        def write(body: ScriptText) -> str:
            body.spec = msgspec.structs.replace(self.spec, metrics=[self.metric], compare_script=None)
            return next(body.functions())

        return self.loader(script, write, "compare_func")


class CompareFuncSimpleArgs(_CompareFunc):
    """Comparison Function: `simple`: tolerances."""

    rtol = Told("tolerance.rtol")
    atol = Told("tolerance.atol")
    check_error_stat = Told("tolerance.stat")
    error_quantile = Told("tolerance.quantile")
    infinities_compare_equal = Told("tolerance.infinities_compare_equal")
    save_heatmaps = Told("save_heatmaps")
    save_error_metrics_plot = Told("save_error_plots")

    def parse_impl(self, args: Any) -> None:
        super().parse_impl(args)
        self.show_heatmaps = self.args.show_heatmaps or None
        self.show_error_metrics_plot = self.args.show_error_metrics_plot or None


class CompareFuncIndicesArgs(_CompareFunc):
    """Comparison Function: `indices`: places of the largest values."""

    metric = "indices"
    index_tolerance = Told("tolerance.index_tolerance")


class CompareFuncL2Args(_CompareFunc):
    """Comparison Function: `l2`: the L2 norm."""

    metric = "l2"
    l2_threshold = Told("tolerance.l2")


class CompareFuncCosineSimilarityArgs(_CompareFunc):
    """Comparison Function: `cosine_similarity`: the cosine similarity."""

    metric = "cosine_similarity"
    cosine_similarity_threshold = Told("tolerance.cosine")


class CompareFuncPsnrArgs(_CompareFunc):
    """Comparison Function: `psnr`: the peak signal to noise ratio."""

    metric = "psnr"
    psnr_threshold = Told("tolerance.psnr")


class CompareFuncSnrArgs(_CompareFunc):
    """Comparison Function: `snr`: the signal to noise ratio."""

    metric = "snr"
    snr_threshold = Told("tolerance.snr")


class CompareFuncPerceptualMetricsArgs(_CompareFunc):
    """Comparison Function: `perceptual_metrics`: LPIPS."""

    metric = "perceptual_metrics"
    lpips_threshold = Told("tolerance.lpips")


def _part(script: str | None, name: str, part: int) -> str | None:
    return None if script is None else values.parse_script(script, name)[part]
