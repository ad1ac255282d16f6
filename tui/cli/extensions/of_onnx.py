"""Groups of options about ONNX models and onnxruntime, for extension modules and tools to rest on."""

from typing import Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.spec import MarkSpec
from layerwise._tool.tui.cli.extensions.groups import BaseRunnerArgs
from layerwise._tool.tui.cli.extensions.of_run import OfRun, Told
from layerwise._tool.tui.cli.extensions.script import Script, Text, run_script
from layerwise._tool.tui.cli.options.common import MARKING, ONNX
from layerwise._tool.tui.cli.options.model import EXTERNAL
from layerwise._tool.tui.cli.options.option import arguments, filled, read
from layerwise._tool.tui.cli.options.run import ONNXRT
from layerwise._tool.tui.cli.script.generate import ScriptText
from layerwise._tool.tui.cli.script.text import call

_ONNX = "layerwise.backend.onnx"


class OnnxInferShapesArgs(OfRun):
    """ONNX Shape Inference: the types and shapes of tensors."""

    def parse_impl(self, args: Any) -> None:
        super().parse_impl(args)
        self.force_fallback = getattr(args, "force_fallback_shape_inference", None)
        self.do_shape_inference = bool(getattr(args, "shape_inference", None)) and not self.force_fallback
        self.allow_onnxruntime = False if self.args.no_onnxruntime_shape_inference else None

    def add_to_script_impl(self, script: Script, loader_name: Any) -> Any:
        """Add an InferShapes of a loader if that was asked for; the name of the one or the other."""
        return self._inferred(script, loader_name) if self.do_shape_inference else loader_name

    def infer_shapes(self, model: Any, force: bool | None = None) -> Any:
        """The model with shapes inferred, if that was asked for or `force`."""
        return run_script(self._inferred, model)() if force or self.do_shape_inference else model

    def _inferred(self, script: Script, loader: Any) -> Text:
        folder = self.spec.model_options.external_data_dir
        text = call("InferShapes", loader, external_data_dir=folder, allow_onnxruntime=self.allow_onnxruntime)
        return self.loader(script, _imported("InferShapes", text), "infer_shapes")


class OnnxSaveArgs(OfRun):
    """ONNX Model Saving: the file of the model that is made."""

    declared = (EXTERNAL,)
    external_data_path = Told("model_options.save_external_data")
    size_threshold = Told("model_options.external_data_size_threshold")

    def __init__(
        self, allow_shape_inference: bool | None = None, output_opt: str | bool | None = None,
        output_short_opt: str | bool | None = None, output_opt_required: bool | None = None,
        output_default_path: str | None = None, allow_multiple_models: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._flags = output_flags(output_opt, output_short_opt)
        self._required, self._default = bool(output_opt_required), output_default_path
        self.path: str | None = None

    def add_parser_args(self, parser: Any) -> None:
        super().add_parser_args(parser)
        if self._flags and not {action.dest for action in parser._actions} & {"save_onnx"}:
            parser.add_argument(*self._flags, dest="save_onnx", default=self._default, required=self._required)

    def parse_impl(self, args: Any) -> None:
        super().parse_impl(args)
        self.path = self.args.save_onnx
        self.all_tensors_to_one_file = False if self.spec.model_options.external_each else None

    def add_to_script_impl(self, script: Script, loader_name: Any) -> Any:
        """Add a SaveOnnx of a loader if a path was typed; the name of the one or the other."""
        return loader_name if self.path is None else self._saved(script, loader_name, self.path)

    def save_onnx(self, model: Any, path: str | None = None) -> Any:
        """Save a model, by default where was typed; the model."""
        wanted = path or self.path
        if wanted is None:
            raise UsageError("the path to save the model at is missing")
        return run_script(lambda script, name: self._saved(script, name, wanted), model)()

    def _saved(self, script: Script, loader: Any, path: str) -> Text:
        single = self.all_tensors_to_one_file
        text = call("SaveOnnx", loader, path, external_data_path=self.external_data_path,
                    size_threshold=self.size_threshold, all_tensors_to_one_file=single)  # fmt: skip
        return self.loader(script, _imported("SaveOnnx", text), "save_onnx")


class OnnxLoadArgs(OfRun):
    """ONNX Model Loading: loading ONNX models, outputs marked and weights found as the options say."""

    declared = (MARKING, ONNX)
    exclude_outputs = Told("marks.exclude")
    mark_types = Told("marks.op_types")
    external_data_dir = Told("model_options.external_data_dir")
    ignore_external_data = Told("model_options.ignore_external_data")
    convert_to_fp16 = Told("model_options.fp16")
    upper_bounds = None

    def __init__(
        self, allow_saving: bool | None = None, outputs_opt_prefix: str | bool | None = None,
        allow_shape_inference: bool | None = None, allow_from_tf: bool | None = None,
        allow_setting_upper_bounds: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()

    @property
    def outputs(self) -> Any:
        """Names that are to be outputs, "mark-all" for all, None where nothing was typed."""
        marks = self.spec.marks
        return "mark-all" if marks.everything else marks.names or None

    def must_use_onnx_loader(self, disable_custom_outputs: bool | None = None) -> bool:
        """Whether the file as it is will not do."""
        options = self.spec.model_options
        changed = options.external_data_dir or options.fp16 or self.args.shape_inference or options.save_onnx
        return bool(changed or (self.spec.marks != MarkSpec() and not disable_custom_outputs))

    def add_to_script_impl(
        self, script: Script, disable_custom_outputs: bool | None = None, serialize_model: bool | None = None
    ) -> Text:
        """Add a loader of the model; its name. UsageError without a model.

        disable_custom_outputs: as the file has them. serialize_model: its bytes.
        """
        path = self.spec.model
        if path is None:
            raise UsageError("the path of the model is missing")
        marks = MarkSpec() if disable_custom_outputs else self.spec.marks
        spec = msgspec.structs.replace(self.spec, marks=marks)

        def loaded(body: ScriptText) -> str:
            body.spec = spec
            return body.loaded(path, infer=True, forced=bool(self.args.shape_inference))

        name = self.loader(script, loaded, "load_onnx")
        if not serialize_model:
            return name
        return self.loader(script, _imported("BytesFromOnnx", call("BytesFromOnnx", name)), "serialize_onnx")

    def load_onnx(self) -> Any:
        """The model, loaded."""
        return run_script(self.add_to_script)()


class OnnxrtSessionArgs(OfRun):
    """ONNX-Runtime Session Creation: onnxruntime's sessions."""

    declared = (ONNXRT,)
    plain = RunnerSpec(kind="onnxrt")
    providers = Told("providers")

    @property
    def graph_optimization_level(self) -> str | None:
        """As it was typed."""
        level: str | None = self.args.graph_optimization_level
        return level

    @property
    def told(self) -> RunnerSpec:
        return filled(self.plain, read((ONNXRT,), self.args))

    def add_to_script_impl(self, script: Script, onnx_name: Any = None) -> Text:
        """Add a loader of a session of the model, or of another one; its name."""
        model = self.arg_groups[OnnxLoadArgs] if onnx_name is None else None
        if model is not None and model.must_use_onnx_loader():
            onnx_name = model.add_to_script(script, serialize_model=True)
        elif model is not None:
            onnx_name = self.spec.model
        text = call("SessionFromOnnx", onnx_name, **arguments("SessionFromOnnx", (ONNXRT,), self.told))
        return self.loader(script, _imported("SessionFromOnnx", text, "layerwise.backend.onnxrt"), "session")

    def load_onnxrt_session(self, model: Any = None) -> Any:
        """A session of the model, or of another one: bytes or a path."""
        return run_script(self.add_to_script, model)()


class OnnxrtRunnerArgs(OfRun, BaseRunnerArgs):
    """ONNX-Runtime Inference: onnxruntime."""

    def get_name_opt_impl(self) -> tuple[str, str]:
        return "ONNX-Runtime", "onnxrt"

    def add_to_script_impl(self, script: Script) -> None:
        session = self.arg_groups[OnnxrtSessionArgs].add_to_script(script)
        write = _imported("OnnxrtRunner", call("OnnxrtRunner", session), "layerwise.backend.onnxrt")
        script.add_runner(self.written(script, write))


class PluginRefRunnerArgs(OfRun, BaseRunnerArgs):
    """Plugin Reference Inference: the CPU references of plugins."""

    def get_name_opt_impl(self) -> tuple[str, str]:
        return "CPU plugin references", "pluginref"

    def add_to_script_impl(self, script: Script) -> None:
        graph = call("GsFromOnnx", self.arg_groups[OnnxLoadArgs].add_to_script(script))
        name = self.loader(script, _imported("GsFromOnnx", graph), "graph")
        write = _imported("PluginRefRunner", call("PluginRefRunner", name), "layerwise.backend.pluginref")
        script.add_runner(self.written(script, write))


def output_flags(name: str | bool | None, short: str | bool | None) -> tuple[str, ...]:
    """The flags of an output's path, as Polygraphy's groups have them; none where the name is False."""
    flags = ("" if short is False else short or "-o", "" if name is False else f"--{name or 'output'}")
    return tuple(str(flag) for flag in flags if flag) if name is not False else ()


def _imported(name: str, text: str, module: str = _ONNX) -> Any:
    """What writes `text`, which `name` of a module has to be imported for."""

    def write(body: ScriptText) -> str:
        body.use(module, name)
        return text

    return write
