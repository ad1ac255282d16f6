"""`--gen-script`: a Python script over the public API that does what a comparison's command line would."""

from collections.abc import Iterator
from typing import Any

import msgspec

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.specs import ENGINE_SUFFIXES, FeedSpec, RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.options import trt_options
from layerwise._tool.debugtools.compare.spec import CompareSpec, MetricName
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.options.option import arguments, left_out
from layerwise._tool.tui.cli.options.run import ONNXRT
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.request.parser import COMPARED
from layerwise._tool.tui.cli.script.text import Code, call, import_lines
from layerwise._tool.tui.cli.script.trt import TrtLoaders, remarks

_FUNCTIONS: dict[MetricName, str] = {
    "simple": "SimpleCompareFunc",
    "indices": "IndicesCompareFunc",
    "l2": "L2CompareFunc",
    "cosine_similarity": "CosineSimilarityCompareFunc",
    "psnr": "PsnrCompareFunc",
    "snr": "SnrCompareFunc",
    "perceptual_metrics": "PerceptualMetricsCompareFunc",
}
_RUNNERS = {
    "onnxrt": ("layerwise.backend.onnxrt", "OnnxrtRunner"),
    "reference": ("layerwise.backend.reference", "ReferenceRunner"),
    "pluginref": ("layerwise.backend.pluginref", "PluginRefRunner"),
}


def script(spec: CompareSpec) -> str:
    """The text of the script; what a script cannot express is listed at its head."""
    body = ScriptText(spec)
    lines = [*body.models(), "", *body.runners(), *body.run(), *body.compare()]
    return "\n".join([*_head(spec), *body.imports(), "", *lines, ""])


def model_loader(spec: CompareSpec, path: str) -> tuple[list[str], str]:
    """The lines that import it, and the expression of a loader of the model at `path`, marked as `spec` has it."""
    body = ScriptText(spec)
    loader = body.loaded(path, infer=True)
    return body.own_imports(), loader


def write_script(text: str, path: str) -> None:
    """Save the script. LayerwiseError where that cannot be."""
    from layerwise._tool.backends.filesystem.files import write_named

    try:
        write_named(path, text)
    except OSError as error:
        raise LayerwiseError(f"--gen-script {shown(path)}: {error.strerror}") from None


def _head(spec: CompareSpec) -> Iterator[str]:
    yield "#!/usr/bin/env python3"
    yield "# The same as:"
    yield f"#     {shell_line(command_line(spec))}"
    for option in left_out(COMPARED, spec):
        yield f"# {option} has no counterpart here: it is what `layerwise run` does in its own process."
    for runner in spec.runners:
        if runner.kind == "trt":
            yield from (f"# {shown(remark)}" for remark in remarks(trt_options(runner.options), spec.feeds))


class ScriptText:
    """The parts of a script; collects the names they import."""

    def __init__(self, spec: CompareSpec) -> None:
        self.spec = spec
        self._imports: dict[str, set[str]] = {}
        self._defined: list[str] = []
        self._live = [runner for runner in spec.runners if runner.kind != "saved"]

    def imports(self) -> list[str]:
        self.use("layerwise.comparator", "Comparator")
        self.use("", "sys")
        return self.own_imports()

    def own_imports(self) -> list[str]:
        return import_lines(self._imports)

    def models(self) -> Iterator[str]:
        """A variable per model file: its path, or a loader that marks its tensors."""
        for number, path in enumerate(self._paths()):
            yield f"model{number or ''} = {self.model(path)}"

    def runners(self) -> Iterator[str]:
        made = [f"    {self._runner(runner)}," for runner in self._live]
        yield from (*self._defined, "runners = [", *made, "]")

    def run(self) -> Iterator[str]:
        """Inference, and the results that are loaded."""
        yield "results = []"
        if self._live:
            loader = Code(self.loader(self.spec.feeds))
            options = arguments("Comparator.run", COMPARED, self.spec)
            yield f"results.append({call('Comparator.run', Code('runners'), data_loader=loader, **options)})"
        for runner in self.spec.runners:
            if runner.kind == "saved":
                self.use("layerwise.comparator", "RunResults")
                yield f"results.append(RunResults.load({runner.results!r}))"
        yield from self._postprocess()

    def compare(self) -> Iterator[str]:
        """Validation, comparison, and the exit code."""
        if self.spec.validate:
            yield "valid = all([Comparator.validate(result, check_inf=True, check_nan=True) for result in results])"
        passed = "valid" if self.spec.validate else "True"
        if len(self.spec.runners) > 1 or any(runner.results_index < 0 for runner in self.spec.runners):
            options = {"fail_fast": self.spec.fail_fast or None}
            options |= arguments("Comparator.compare_accuracy", COMPARED, self.spec)
            functions = Code(f"[{', '.join(self.functions())}]")
            made = call("Comparator.compare_accuracy", Code("results"), compare_func=functions, **options)
            yield f"accuracy = {made}"
            if self.spec.save_accuracy:
                yield f"accuracy.save({self.spec.save_accuracy!r})"
            yield "compared = any(outputs for result in accuracy for pair in result for outputs in result[pair])"
            passed = "compared and accuracy and valid" if self.spec.validate else "compared and accuracy"
        yield f"sys.exit(0 if {passed} else 1)"

    def _paths(self) -> list[str]:
        paths = [runner.model or self.spec.model for runner in self._live]
        return list(dict.fromkeys(path for path in paths if path is not None))

    def model(self, path: str) -> str:
        """The model at `path`: its path, or a loader of its bytes where something is changed."""
        marks, options = self.spec.marks, self.spec.model_options
        marked = marks.everything or marks.names or marks.op_types or marks.exclude
        external = options.external_data_dir or options.ignore_external_data
        if not (marked or external or options.save_onnx or options.fp16):
            return repr(path)
        loader = self.loaded(path)
        if options.save_onnx:
            self.use("layerwise.backend.onnx", "SaveOnnx")
            loader = call("SaveOnnx", Code(loader), options.save_onnx, external_data_path=options.save_external_data,
                          size_threshold=options.external_data_size_threshold,
                          all_tensors_to_one_file=False if options.external_each else None)  # fmt: skip
        self.use("layerwise.backend.onnx", "BytesFromOnnx")
        return f"BytesFromOnnx({loader})"

    def loaded(self, path: str, infer: bool = False, forced: bool = False) -> str:
        """A loader of the model as it is marked; infer: what is marked has a type; forced: all tensors have."""
        marks, options = self.spec.marks, self.spec.model_options
        self.use("layerwise.backend.onnx", "OnnxFromPath")
        loader = call("OnnxFromPath", path, external_data_dir=options.external_data_dir,
                      ignore_external_data=options.ignore_external_data or None)  # fmt: skip
        if options.fp16 and path == self.spec.model:
            if any(runner.model == path for runner in self._live):
                raise UsageError("--gen-script writes no comparison of a model with its own FP16 form in this version")
            self.use("layerwise.backend.onnx", "ConvertToFp16")
            loader = f"ConvertToFp16({loader})"
        marked = marks.everything or marks.names or marks.op_types or marks.exclude
        if forced or (marked and infer):
            self.use("layerwise.backend.onnx", "InferShapes")
            loader = f"InferShapes({loader})"
        return self._marked(loader) if marked else loader

    def _marked(self, loader: str) -> str:
        marks = self.spec.marks
        self.use("layerwise.backend.onnx", "ModifyOutputs")
        outputs: Any = list(marks.names) if marks.only or marks.names else None
        if marks.everything:
            self.use("layerwise.constants", "MARK_ALL")
            outputs = Code("MARK_ALL")
        keep = True if marks.names and not marks.only and not marks.everything else None
        return call("ModifyOutputs", Code(loader), outputs=outputs, exclude_outputs=marks.exclude or None,
                    mark_types=marks.op_types or None, keep_outputs=keep)  # fmt: skip

    def _runner(self, runner: RunnerSpec) -> str:
        if runner.kind == "extension":
            return self._extension(str(runner.options["script"]))
        if runner.kind not in (*_RUNNERS, "trt"):
            raise UsageError(f"--gen-script does not write runners of kind {runner.kind!r} in this version")
        path = runner.model or self.spec.model
        variable = Code(f"model{self._paths().index(path) or ''}" if path in self._paths() else repr(path))
        if runner.kind == "trt":
            return self._trt_runner(runner, path, variable)
        self.use(*_RUNNERS[runner.kind])
        name = {"name": runner.name or None}
        if runner.kind != "onnxrt":
            return call(_RUNNERS[runner.kind][1], variable, **name)
        self.use("layerwise.backend.onnxrt", "SessionFromOnnx")
        session = call("SessionFromOnnx", variable, **arguments("SessionFromOnnx", (ONNXRT,), runner))
        return call("OnnxrtRunner", Code(session), **name)

    def _extension(self, text: str) -> str:
        """A function of the script's own for what an extension module has written."""
        name = f"extension{len(self._defined) or ''}"
        body = "\n".join(f"    {line}" for line in text.splitlines())
        self._defined.append(f"def {name}():\n{body}\n    return runners[0]\n\n")
        return f"{name}()"

    def _trt_runner(self, runner: RunnerSpec, path: str | None, variable: Code) -> str:
        if path is not None and path.lower().endswith(ENGINE_SUFFIXES):
            runner = msgspec.structs.replace(runner, options={**runner.options, "engine": path})
        changed = path is not None and self.model(path) != repr(path)
        return self.trt(path).runner(runner, variable, changed, self.spec.feeds)

    def trt(self, path: str | None) -> TrtLoaders:
        """Of the model at `path`; what they import is collected here."""
        return TrtLoaders(self.use, self.loader, path)

    def loader(self, feeds: FeedSpec) -> str:
        """A data loader of these feeds."""
        if feeds.files:
            self.use("layerwise.comparator", "StreamingDataLoader")
            return call("StreamingDataLoader", feeds.files)
        if feeds.script:
            self.use("layerwise.backend.common", "InvokeFromScript")
            return call("InvokeFromScript", feeds.script, feeds.function) + "()"
        self.use("layerwise.comparator", "DataLoader")
        return call("DataLoader", **arguments("DataLoader", COMPARED, CompareSpec(feeds=feeds)))

    def _postprocess(self) -> Iterator[str]:
        function = ""
        if self.spec.postprocess_script:
            self.use("layerwise.backend.common", "InvokeFromScript")
            function = call(
                "InvokeFromScript", *values.parse_script(self.spec.postprocess_script, "postprocess_outputs")
            )
        elif self.spec.postprocess:
            self.use("layerwise.comparator", "TopKPostprocessFunc")
            function = call("TopKPostprocessFunc", {name: top_k(text) for name, text in self.spec.postprocess.items()})
        if function:
            yield f"results = Comparator.postprocess(results, {function})"

    def functions(self) -> Iterator[str]:
        """The comparison functions, one for each metric."""
        spec = self.spec
        if spec.compare_script:
            self.use("layerwise.backend.common", "InvokeFromScript")
            yield call("InvokeFromScript", *values.parse_script(spec.compare_script, "compare_outputs"))
            return
        for metric in spec.metrics:
            function = _FUNCTIONS[metric]
            self.use("layerwise.comparator", function)
            given = arguments(function, COMPARED, spec)
            options = {name: _plain(value) if isinstance(value, dict) else value for name, value in given.items()}
            options |= {"check_shapes": None if spec.shape_check or metric == "indices" else False,
                        "fail_fast": spec.fail_fast or None}  # fmt: skip
            if spec.rename and metric != "indices":
                options["find_output_func"] = Code(f"lambda name, index, result: [{spec.rename!r}.get(name, name)]")
            yield call(function, **options)

    def use(self, module: str, name: str) -> None:
        """Have `name` of a module imported; of the module "" the module of that name."""
        self._imports.setdefault(module, set()).add(name)


def _plain(rules: dict[str, Any]) -> Any:
    """A rule for all outputs as the value alone."""
    return rules[""] if list(rules) == [""] else rules


def top_k(text: str) -> Any:
    """K, or (K, axis), of `top-K` or `top-K,axis=A`."""
    count, _, axis = text.removeprefix("top-").partition(",axis=")
    return (int(count), int(axis)) if axis else int(count)
