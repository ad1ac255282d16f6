"""`--gen-script`: a Python script over the public API that does what a comparison's command line would."""

import shlex
from collections.abc import Iterator
from typing import Any

from backends.errors import LayerwiseError, UsageError
from backends.specs import RunnerSpec
from backends.text import shown
from debugtools.compare.spec import CompareSpec, MetricName
from tui.cli import values
from tui.cli.line import command_line

_FUNCTIONS: dict[MetricName, tuple[str, dict[str, str]]] = {
    "simple": (
        "SimpleCompareFunc",
        {"rtol": "rtol", "atol": "atol", "check_error_stat": "stat", "error_quantile": "quantile"},
    ),
    "indices": ("IndicesCompareFunc", {"index_tolerance": "index_tolerance"}),
    "l2": ("L2CompareFunc", {"l2_threshold": "l2"}),
    "cosine_similarity": ("CosineSimilarityCompareFunc", {"cosine_similarity_threshold": "cosine"}),
    "psnr": ("PsnrCompareFunc", {"psnr_threshold": "psnr"}),
    "snr": ("SnrCompareFunc", {"snr_threshold": "snr"}),
    "perceptual_metrics": ("PerceptualMetricsCompareFunc", {"lpips_threshold": "lpips"}),
}
_RUNNERS = {
    "onnxrt": ("layerwise.backend.onnxrt", "OnnxrtRunner"),
    "reference": ("layerwise.backend.reference", "ReferenceRunner"),
    "pluginref": ("layerwise.backend.pluginref", "PluginRefRunner"),
}
_SESSION_OPTIONS = (
    "providers", "provider_options", "tf32", "graph_optimization_level", "threads", "inter_threads", "custom_ops",
)  # fmt: skip


def script(spec: CompareSpec) -> str:
    """The text of the script; what a script cannot express is listed at its head."""
    body = _Body(spec)
    lines = [*body.models(), "", *body.runners(), *body.run(), *body.compare()]
    return "\n".join([*_head(spec), *body.imports(), "", *lines, ""])


def model_loader(spec: CompareSpec, path: str) -> tuple[list[str], str]:
    """The lines that import it, and the expression of a loader of the model at `path`, marked as `spec` has it."""
    body = _Body(spec)
    loader = body.loaded(path, infer=True)
    return body.own_imports(), loader


def write_script(text: str, path: str) -> None:
    """Save the script. LayerwiseError where that cannot be."""
    from backends.files import atomic_write

    try:
        atomic_write(path, text)
    except OSError as error:
        raise LayerwiseError(f"--gen-script {shown(path)}: {error.strerror}") from None


def _head(spec: CompareSpec) -> Iterator[str]:
    yield "#!/usr/bin/env python3"
    yield "# The same as:"
    yield f"#     {shown(shlex.join(command_line(spec)))}"
    left_out = {
        "--save-heatmaps": spec.save_heatmaps, "--save-error-metrics-plot": spec.save_error_plots,
        "--tolerance auto": spec.tolerance.auto, "--memory-budget": spec.memory_budget,
        "--observe": spec.observe != "auto",
    }  # fmt: skip
    for option, given in left_out.items():
        if given:
            yield f"# {option} has no counterpart here: it is what `layerwise run` does in its own process."


class _Body:
    """The parts of a script; collects the names they import."""

    def __init__(self, spec: CompareSpec) -> None:
        self.spec = spec
        self._imports: dict[str, set[str]] = {}
        self._live = [runner for runner in spec.runners if runner.kind != "saved"]

    def imports(self) -> list[str]:
        self._use("layerwise.comparator", "Comparator")
        return ["import sys", "", *self.own_imports()]

    def own_imports(self) -> list[str]:
        return [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(self._imports.items())]

    def models(self) -> Iterator[str]:
        """A variable per model file: its path, or a loader that marks its tensors."""
        for number, path in enumerate(self._paths()):
            yield f"model{number or ''} = {self._model(path)}"

    def runners(self) -> Iterator[str]:
        yield "runners = ["
        for runner in self._live:
            yield f"    {self._runner(runner)},"
        yield "]"

    def run(self) -> Iterator[str]:
        """Inference, and the results that are loaded."""
        yield "results = []"
        if self._live:
            options = {
                "data_loader": _Code(self._loader()), "warm_up": self.spec.warm_up or None,
                "save_inputs_path": self.spec.save_inputs, "save_outputs_path": self.spec.save_outputs,
                "save_input_blob_path": self.spec.save_input_blob,
            }  # fmt: skip
            yield f"results.append({_call('Comparator.run', _Code('runners'), **options)})"
        for runner in self.spec.runners:
            if runner.kind == "saved":
                self._use("layerwise.comparator", "RunResults")
                yield f"results.append(RunResults.load({runner.results!r}))"
        yield from self._postprocess()

    def compare(self) -> Iterator[str]:
        """Validation, comparison, and the exit code."""
        if self.spec.validate:
            yield "valid = all([Comparator.validate(result, check_inf=True, check_nan=True) for result in results])"
        passed = "valid" if self.spec.validate else "True"
        if len(self.spec.runners) > 1 or any(runner.results_index < 0 for runner in self.spec.runners):
            options = {"fail_fast": self.spec.fail_fast or None, "check_average": self.spec.check_average or None}
            functions = _Code(f"[{', '.join(self._functions())}]")
            call = _call("Comparator.compare_accuracy", _Code("results"), compare_func=functions, **options)
            yield f"accuracy = {call}"
            if self.spec.save_accuracy:
                yield f"accuracy.save({self.spec.save_accuracy!r})"
            passed = "accuracy and valid" if self.spec.validate else "accuracy"
        yield f"sys.exit(0 if {passed} else 1)"

    def _paths(self) -> list[str]:
        paths = [runner.model or self.spec.model for runner in self._live]
        return list(dict.fromkeys(path for path in paths if path is not None))

    def _model(self, path: str) -> str:
        marks, options = self.spec.marks, self.spec.model_options
        marked = marks.everything or marks.names or marks.op_types or marks.exclude
        external = options.external_data_dir or options.ignore_external_data
        if not (marked or external or options.save_onnx):
            return repr(path)
        loader = self.loaded(path)
        if options.save_onnx:
            self._use("layerwise.backend.onnx", "SaveOnnx")
            loader = _call("SaveOnnx", _Code(loader), options.save_onnx, external_data_path=options.save_external_data,
                           size_threshold=options.external_data_size_threshold)  # fmt: skip
        self._use("layerwise.backend.onnx", "BytesFromOnnx")
        return f"BytesFromOnnx({loader})"

    def loaded(self, path: str, infer: bool = False) -> str:
        """A loader of the model as it is marked; `infer`: what is marked has a type."""
        marks, options = self.spec.marks, self.spec.model_options
        self._use("layerwise.backend.onnx", "OnnxFromPath")
        loader = _call("OnnxFromPath", path, external_data_dir=options.external_data_dir,
                       ignore_external_data=options.ignore_external_data or None)  # fmt: skip
        marked = marks.everything or marks.names or marks.op_types or marks.exclude
        if marked and infer:
            self._use("layerwise.backend.onnx", "InferShapes")
            loader = f"InferShapes({loader})"
        return self._marked(loader) if marked else loader

    def _marked(self, loader: str) -> str:
        marks = self.spec.marks
        self._use("layerwise.backend.onnx", "ModifyOutputs")
        outputs: Any = list(marks.names) if marks.only or marks.names else None
        if marks.everything:
            self._use("layerwise.constants", "MARK_ALL")
            outputs = _Code("MARK_ALL")
        keep = True if marks.names and not marks.only and not marks.everything else None
        return _call("ModifyOutputs", _Code(loader), outputs=outputs, exclude_outputs=marks.exclude or None,
                     mark_types=marks.op_types or None, keep_outputs=keep)  # fmt: skip

    def _runner(self, runner: RunnerSpec) -> str:
        if runner.kind not in _RUNNERS:
            raise UsageError(f"--gen-script does not write runners of kind {runner.kind!r} in this version")
        path = runner.model or self.spec.model
        variable = _Code(f"model{self._paths().index(path) or ''}" if path in self._paths() else repr(path))
        self._use(*_RUNNERS[runner.kind])
        name = {"name": runner.name or None}
        if runner.kind != "onnxrt":
            return _call(_RUNNERS[runner.kind][1], variable, **name)
        self._use("layerwise.backend.onnxrt", "SessionFromOnnx")
        given = {key: getattr(runner, key) for key in _SESSION_OPTIONS}
        session = _call("SessionFromOnnx", variable, **{key: v for key, v in given.items() if v not in ([], {})})
        return _call("OnnxrtRunner", _Code(session), **name)

    def _loader(self) -> str:
        feeds = self.spec.feeds
        if feeds.files:
            self._use("layerwise.comparator", "StreamingDataLoader")
            return _call("StreamingDataLoader", feeds.files)
        if feeds.script:
            self._use("layerwise.backend.common", "InvokeFromScript")
            return _call("InvokeFromScript", feeds.script, feeds.function) + "()"
        self._use("layerwise.comparator", "DataLoader")
        return _call(
            "DataLoader",
            seed=None if feeds.seed == 1 else feeds.seed,
            iterations=feeds.iterations,
            val_range=feeds.val_range or None,
            input_shapes=feeds.shapes or None,
            data_loader_backend_module=None if feeds.backend_module == "numpy" else feeds.backend_module,
        )

    def _postprocess(self) -> Iterator[str]:
        function = ""
        if self.spec.postprocess_script:
            self._use("layerwise.backend.common", "InvokeFromScript")
            function = _call(
                "InvokeFromScript", *values.parse_script(self.spec.postprocess_script, "postprocess_outputs")
            )
        elif self.spec.postprocess:
            self._use("layerwise.comparator", "TopKPostprocessFunc")
            function = _call(
                "TopKPostprocessFunc", {name: _top_k(text) for name, text in self.spec.postprocess.items()}
            )
        if function:
            yield f"results = Comparator.postprocess(results, {function})"

    def _functions(self) -> Iterator[str]:
        spec = self.spec
        if spec.compare_script:
            self._use("layerwise.backend.common", "InvokeFromScript")
            yield _call("InvokeFromScript", *values.parse_script(spec.compare_script, "compare_outputs"))
            return
        for metric in spec.metrics:
            function, fields = _FUNCTIONS[metric]
            self._use("layerwise.comparator", function)
            options = {option: _plain(getattr(spec.tolerance, field)) for option, field in fields.items()}
            options |= {"check_shapes": None if spec.shape_check or metric == "indices" else False,
                        "fail_fast": spec.fail_fast or None}  # fmt: skip
            if metric == "simple":
                options["infinities_compare_equal"] = spec.tolerance.infinities_compare_equal or None
            if spec.rename and metric != "indices":
                options["find_output_func"] = _Code(f"lambda name, index, result: [{spec.rename!r}.get(name, name)]")
            yield _call(function, **options)

    def _use(self, module: str, name: str) -> None:
        self._imports.setdefault(module, set()).add(name)


class _Code(str):
    """Text that goes into the script as it stands."""

    def __repr__(self) -> str:
        return str(self)


def _call(function: str, *args: Any, **options: Any) -> str:
    given = [repr(arg) for arg in args] + [f"{name}={value!r}" for name, value in options.items() if value is not None]
    return f"{function}({', '.join(given)})"


def _plain(rules: dict[str, Any]) -> Any:
    """A rule for all outputs as the value alone."""
    if not rules:
        return None
    return rules[""] if list(rules) == [""] else rules


def _top_k(text: str) -> Any:
    count, _, axis = text.removeprefix("top-").partition(",axis=")
    return (int(count), int(axis)) if axis else int(count)
