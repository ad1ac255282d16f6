"""A comparison's parts in a few words."""

from collections.abc import Sequence
from pathlib import Path

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.trt.options import trt_options
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec, compares_layers, rules_of

BACKENDS = {
    "onnxrt": "onnxruntime",
    "reference": "onnx reference",
    "pluginref": "plugin reference",
    "trt": "TensorRT",
    "torch": "PyTorch",
    "extension": "extension",
}


def side_name(runner: RunnerSpec) -> str:
    """`onnxruntime cuda, disable, fp16.onnx`: what tells this side from others."""
    if runner.name:
        return runner.name
    if runner.kind == "saved":
        return f"saved {Path(runner.results or '').name}"
    words = [BACKENDS[runner.kind]]
    if runner.kind == "onnxrt":
        words[0] += " " + (" ".join(runner.providers) or "cpu")
    if runner.kind == "trt":
        words += _trt_words(runner)
    if runner.kind == "torch":
        words += ["compiled" if value is True else str(value) for value in runner.options.values()]
    if runner.graph_optimization_level:
        words.append(f"opt {runner.graph_optimization_level}")
    if runner.tf32 is False:
        words.append("no tf32")
    if runner.model:
        words.append(Path(runner.model).name)
    return ", ".join(words)


def _trt_words(runner: RunnerSpec) -> list[str]:
    """What tells one engine from another: its file, or how it is built."""
    try:
        options = trt_options(runner.options)
    except UsageError:
        return []
    config, level = options.config, options.config.optimization_level
    words = [Path(options.engine).name] if options.engine else []
    words += [name for name in ("tf32", "fp16", "bf16", "int8", "fp8") if getattr(config, name)]
    words += [f"level {level}"] if level is not None else []
    return words + (["CUDA graph"] if options.run.cuda_graph else [])


def side_names(runners: Sequence[RunnerSpec]) -> list[str]:
    """Names of all sides; equal ones are numbered."""
    names = [side_name(runner) for runner in runners]
    return [f"{name} #{k + 1}" if names.count(name) > 1 else name for k, name in enumerate(names)]


_BOUNDS = {
    "l2": ("L2 at most", "l2", 1e-5), "cosine_similarity": ("cosine at least", "cosine", 0.997),
    "psnr": ("PSNR at least", "psnr", 30.0), "snr": ("SNR at least", "snr", 20.0),
    "perceptual_metrics": ("LPIPS at most", "lpips", 0.1), "indices": ("indices within", "index_tolerance", 0),
}  # fmt: skip


def rule_text(spec: CompareSpec) -> str:
    """What a row must meet to pass: a clause for each metric."""
    if spec.compare_script:
        return f"by {Path(spec.compare_script).name}"
    rules = rules_of(spec.tolerance, layers=compares_layers(spec))
    return ", ".join(_metric_rule(name, rules) for name in spec.metrics)


def _metric_rule(metric: str, rules: ToleranceSpec) -> str:
    if metric not in _BOUNDS:
        return tolerance_text(rules)
    words, field, default = _BOUNDS[metric]
    return f"{words} {getattr(rules, field).get('', default):g}"


def tolerance_text(rules: ToleranceSpec) -> str:
    """`by dtype`, or `abs 1e-05 rel 1e-05 (max)`; `…` where outputs have their own."""
    stat = rules.stat.get("", "")
    tail = f" ({stat})" if stat and stat != "elemwise" else ""
    if rules.auto and not rules.atol and not rules.rtol:
        return "by dtype" + tail
    own = " …" if set(rules.atol) | set(rules.rtol) > {""} else ""
    return f"abs {rules.atol.get('', 1e-5):g} rel {rules.rtol.get('', 1e-5):g}{own}{tail}"


def marks_text(marks: MarkSpec) -> str:
    """`every tensor`, `3 names`, `all MatMul Softmax`, `outputs`."""
    if marks.everything:
        return "every tensor"
    words = [f"{len(marks.names)} marked"] if marks.names else []
    words += ["all " + " ".join(marks.op_types)] if marks.op_types else []
    return ", ".join(words) or "outputs"


def compare_title(spec: CompareSpec) -> str:
    """The title of a compare job."""
    model = Path(spec.model).name if spec.model else "saved outputs"
    return f"{model}: {' against '.join(side_names(spec.runners))}, {marks_text(spec.marks)}"
