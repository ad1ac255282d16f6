"""Groups of options about TensorRT, for extension modules and tools to rest on."""

from functools import cached_property
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import ENGINE_SUFFIXES
from layerwise._tool.backends.trt.options import NetworkOptions, TrtOptions
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.extensions.groups import BaseRunnerArgs
from layerwise._tool.tui.cli.extensions.of_onnx import OnnxLoadArgs, output_flags
from layerwise._tool.tui.cli.extensions.of_run import OfRun, Told
from layerwise._tool.tui.cli.extensions.script import Script, Text, run_script
from layerwise._tool.tui.cli.options.trt import TRT
from layerwise._tool.tui.cli.request.runners import trt_options
from layerwise._tool.tui.cli.request.to_spec import wants_engine
from layerwise._tool.tui.cli.script.generate import ScriptText
from layerwise._tool.tui.cli.script.shapes import fed_profiles
from layerwise._tool.tui.cli.script.text import Code, call
from layerwise._tool.tui.cli.script.trt import TrtLoaders


class OfTrt(OfRun):
    """A group of options of TensorRT."""

    plain = TrtOptions()

    def parse_impl(self, args: Any) -> None:
        super().parse_impl(args)
        vars(self).pop("options", None)

    @cached_property
    def options(self) -> TrtOptions:
        """What was typed about TensorRT."""
        return trt_options(self.args)

    @property
    def told(self) -> TrtOptions:
        return self.options

    def trt(self, body: ScriptText) -> TrtLoaders:
        return body.trt(self.spec.model)


class TrtConfigArgs(OfTrt):
    """TensorRT Builder Configuration: the builder config. Attributes are None where nothing was typed."""

    declared = (TRT,)
    use_gpu = compute_capabilities = None  # which no command line of Polygraphy sets
    tf32, fp16, bf16, fp8, int8 = (Told(f"config.{name}") for name in ("tf32", "fp16", "bf16", "fp8", "int8"))
    precision_constraints = Told("config.precision_constraints")
    restricted = Told("config.safety_restricted")
    calibration_cache = Told("config.calibration_cache")
    calibration_base_class = Told("config.calibrator")
    sparse_weights = Told("config.sparse_weights")
    load_timing_cache = Told("load_timing_cache")
    load_tactics = Told("load_tactics")
    save_tactics = Told("save_tactics")
    tactic_sources = Told("config.tactic_sources")
    use_dla = Told("config.use_dla")
    allow_gpu_fallback = Told("config.allow_gpu_fallback")
    memory_pool_limits = Told("config.pool_limits")
    engine_capability = Told("config.engine_capability")
    direct_io = Told("config.direct_io")
    preview_features = Told("config.preview_features")
    refittable = Told("config.refittable")
    strip_plan = Told("config.strip_plan")
    builder_optimization_level = Told("config.optimization_level")
    hardware_compatibility_level = Told("config.hardware_compatibility")
    profiling_verbosity = Told("config.profiling_verbosity")
    max_aux_streams = Told("config.max_aux_streams")
    version_compatible = Told("config.version_compatible")
    exclude_lean_runtime = Told("config.exclude_lean_runtime")
    quantization_flags = Told("config.quantization_flags")
    error_on_timing_cache_miss = Told("config.error_on_timing_cache_miss")
    disable_compilation_cache = Told("config.disable_compilation_cache")
    weight_streaming = Told("config.weight_streaming")
    runtime_platform = Told("config.runtime_platform")
    tiling_optimization_level = Told("config.tiling")

    @property
    def profile_dicts(self) -> list[dict[str, tuple[Any, ...]]]:
        """A profile each: input name -> (min, opt, max) shape; None for one that was not typed."""
        return [
            {
                name: (one.min.get(name), one.opt.get(name), one.max.get(name))
                for name in {**one.min, **one.opt, **one.max}
            }
            for one in self.options.profiles or fed_profiles(self.spec.feeds)
        ]

    @property
    def trt_config_script(self) -> str | None:
        return _path(self.options.config.config_script)

    @property
    def trt_config_func_name(self) -> str | None:
        return _function(self.options.config.config_script, "load_config")

    @property
    def trt_config_postprocess_script(self) -> str | None:
        return _path(self.options.config.config_postprocess)

    @property
    def trt_config_postprocess_func_name(self) -> str | None:
        return _function(self.options.config.config_postprocess, "postprocess_config")

    def add_to_script_impl(self, script: Script, custom_loader_name: str | None = None) -> Text:
        """Add a loader of the config, to be called with builder and network; its name."""
        feeds = self.spec.feeds
        return self.loader(
            script, lambda body: self.trt(body).config(self.options, feeds), custom_loader_name or "create_trt_config"
        )

    def create_config(self, builder: Any, network: Any) -> Any:
        """The config."""
        return run_script(self.add_to_script)(builder, network)


class TrtLoadPluginsArgs(OfTrt):
    """TensorRT Plugin Loading: libraries of plugins."""

    plugins = Told("network.plugins")

    def add_to_script_impl(self, script: Script, loader_name: Any) -> Any:
        """Add a LoadPlugins around a loader if there are libraries; the name of the one or the other."""
        if not self.options.network.plugins:
            return loader_name
        wrapped = Code(repr(loader_name))
        return self.loader(
            script, lambda body: self.trt(body).with_plugins(self.options.network, wrapped), "load_plugins"
        )


class TrtOnnxFlagArgs(OfTrt):
    """ONNX-TRT Parser Flags: flags of TensorRT's parser."""

    def get_flags(self) -> tuple[list[str] | None, bool | None]:
        """The names of flags, None for none, and whether InstanceNormalization is the plugin's."""
        network = self.options.network
        return network.onnx_flags or None, network.plugin_instancenorm or None


class TrtLoadNetworkArgs(OfTrt):
    """TensorRT Network Loading: networks of ONNX models or scripts, changed as the options say."""

    exclude_outputs = Told("network.exclude_outputs")
    mark_layer_types = Told("network.output_types")
    layer_precisions = Told("network.layer_precisions")
    decomposable_attentions = Told("network.decomposable_attentions")
    tensor_datatypes = Told("network.tensor_dtypes")
    tensor_formats = Told("network.tensor_formats")
    strongly_typed = Told("network.strongly_typed")
    mark_debug = Told("network.mark_debug")
    mark_unfused_tensors_as_debug_tensors = Told("network.mark_unfused")

    @property
    def outputs(self) -> Any:
        """Names that are to be outputs, "mark-all" for all, None where nothing was typed."""
        names = self.options.network.outputs
        return "mark-all" if names == ["*"] else names or None

    @property
    def postprocess_scripts(self) -> list[tuple[str, str]]:
        return [values.parse_script(text, "postprocess") for text in self.options.network.postprocess]

    def add_to_script_impl(self, script: Script) -> Text:
        """Add a loader of the network; its name. UsageError without a model."""
        path = self.spec.model
        if path is None:
            raise UsageError("the path of the model is missing")
        load = self.arg_groups[OnnxLoadArgs]
        changed = self.options.network.function is None and load.must_use_onnx_loader(disable_custom_outputs=True)
        name = load.add_to_script(script, disable_custom_outputs=True, serialize_model=True) if changed else repr(path)
        network = self.options.network
        return self.loader(script, lambda body: self.trt(body).network(network, Code(str(name)), changed), "network")

    def load_network(self) -> Any:
        """Builder, network and parser."""
        return run_script(self.add_to_script)()


class TrtSaveEngineBytesArgs(OfTrt):
    """TensorRT Engine Saving: the file of the engine that is built."""

    path = Told("save_engine")

    def __init__(self, output_opt: str | bool | None = None, output_short_opt: str | bool | None = None) -> None:
        super().__init__()
        self._flags = output_flags(output_opt, output_short_opt)

    def add_parser_args(self, parser: Any) -> None:
        if self._flags and not {action.dest for action in parser._actions} & {"save_engine"}:
            parser.add_argument(*self._flags, dest="save_engine", help="path of the engine")

    def add_to_script_impl(self, script: Script, loader_name: Any) -> Any:
        """Add a SaveBytes of a loader if a path was typed; the name of the one or the other."""
        return loader_name if self.path is None else self._saved(script, loader_name, self.path)

    def save_engine_bytes(self, engine_bytes: Any, path: str | None = None) -> Any:
        """Save a serialised engine, by default where was typed; the same."""
        wanted = path or self.path
        if wanted is None:
            raise UsageError("the path to save the engine at is missing")
        return run_script(lambda script, name: self._saved(script, name, wanted), engine_bytes)()

    def _saved(self, script: Script, loader: Any, path: str) -> Text:
        script.add_import(["SaveBytes"], frm="layerwise.backend.common")
        return self.loader(script, lambda body: call("SaveBytes", loader, path=path), "save_engine_bytes")


class TrtLoadEngineBytesArgs(OfTrt):
    """TensorRT Engine: engines, serialised, loaded or built."""

    save_timing_cache = Told("save_timing_cache")

    def __init__(self, allow_saving: bool | None = None) -> None:
        super().__init__()
        self._saving = bool(allow_saving)

    def add_to_script_impl(self, script: Script, network_name: Any = None) -> Text:
        """Add a loader of the bytes of an engine, of the model's network or of another one; its name."""
        path = self.spec.model or ""
        if wants_engine(self.args) and path.lower().endswith(ENGINE_SUFFIXES):
            script.add_import(["BytesFromPath"], frm="layerwise.backend.common")
            return self.loader(script, lambda body: call("BytesFromPath", path), "load_engine_bytes")
        network = network_name or self.arg_groups[TrtLoadNetworkArgs].add_to_script(script)
        feeds, given = self.spec.feeds, Code(repr(network))
        name = self.loader(script, lambda body: self.trt(body).plan(self.options, given, feeds), "build_engine")
        saved: Text = self.arg_groups[TrtSaveEngineBytesArgs].add_to_script(script, name) if self._saving else name
        return saved

    def load_engine_bytes(self, network: Any = None) -> Any:
        """The bytes of the engine."""
        return run_script(self.add_to_script, network)()


class TrtLoadEngineArgs(OfTrt):
    """TensorRT Engine: engines, ready to run."""

    load_runtime = Told("run.runtime")
    dla_workspace_allocation_strategy = Told("run.dla_workspace")
    save_timing_cache = Told("save_timing_cache")

    def add_to_script_impl(self, script: Script, network_name: Any = None) -> Text:
        """Add a loader of an engine, of the model's network or of another one; its name."""
        data = Code(repr(self.arg_groups[TrtLoadEngineBytesArgs].add_to_script(script, network_name)))
        options = TrtOptions(network=NetworkOptions(plugins=self.options.network.plugins), run=self.options.run)
        return self.loader(script, lambda body: self.trt(body).deserialised(options, data), "deserialize_engine")

    def load_engine(self, network: Any = None) -> Any:
        """The engine."""
        return run_script(self.add_to_script, network)()


class TrtRunnerArgs(OfTrt, BaseRunnerArgs):
    """TensorRT Inference: TensorRT."""

    optimization_profile = Told("run.profile")
    allocation_strategy = Told("run.strategy")

    @property
    def weight_streaming_budget(self) -> int | None:
        budget = self.options.run.budget or ""
        return int(budget) if budget.lstrip("-").isdecimal() else None

    @property
    def weight_streaming_percent(self) -> float | None:
        budget = self.options.run.budget or ""
        return float(budget[:-1]) if budget.endswith("%") else None

    def get_name_opt_impl(self) -> tuple[str, str]:
        return "TensorRT", "trt"

    def add_to_script_impl(self, script: Script) -> None:
        engine = Code(repr(self.arg_groups[TrtLoadEngineArgs].add_to_script(script)))
        script.add_runner(self.written(script, lambda body: self.trt(body).running(self.options, engine)))


def _path(script: str | None) -> str | None:
    return None if script is None else values.parse_script(script, "")[0]


def _function(script: str | None, name: str) -> str | None:
    return None if script is None else values.parse_script(script, name)[1]
